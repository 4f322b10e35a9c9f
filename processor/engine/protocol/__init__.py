"""The protocol over the table: what a job must remember, the steps that yield requests, and the gates. Pure.

A step never imports another one. What a job must remember are items of the table: ledger, open changes, fan-outs, backlog,
walks, replays, held roots.
"""
