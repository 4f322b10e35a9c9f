"""The envelopes in which the changes of rows arrive: one file for each kind, and their table in `kinds`.

A new kind is its file and its row in `ENVELOPES`. The word of `format`, the schemas of editors, the page of definitions and the
conformance suite (tests/unit/values/envelopes) read the table.
"""
