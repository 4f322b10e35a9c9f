"""The path of an event: from a record of a topic to published documents.

    1.  job/run/source.py               Spark brings a batch of Kafka records; job/run/job.py gives it to the driver
    2.  engine/rounds/driver.py         checks the lease, and runs the batch as one round
    3.  engine/rounds/write_stage.py    a write task takes the records of some partitions through steps 4 to 7
    4.  engine/protocol/decode.py       bytes -> a change, or a dead letter
    5.  engine/protocol/decode.py       all changes of one key in the batch -> one change
    6.  engine/protocol/write_state.py  one conditional write; the task then makes the open changes durable (open_changes.py)
    7.  engine/protocol/find_roots.py   old and new join keys -> the roots whose documents may change
    8.  engine/rounds/publish_stage.py  a publish task takes the roots of one lane through steps 9 and 10
    9.  engine/protocol/assemble.py     the root by key, then one query or key read for each join
    10. engine/protocol/publish.py      reads the ledger, reserves, sends the message

Later rounds settle open changes (settle.py), continue fan-outs, and publish the backlog (follow_up_stages.py). Edits of the
registry come between rounds (operators.py), and walks bring stored rows up to them (walks.py).

The reading order: first the packages `statestore` (the table) and `registry` (slots, leases). Then the wings from below, as
docs/architecture.md draws them: a room imports only rooms below it. CONTRIBUTING.md names the files to read first.
"""
