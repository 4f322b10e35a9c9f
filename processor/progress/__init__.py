"""What a job must remember, as items of the table: ledger, open changes, fan-outs, backlog, replays. Pure."""
