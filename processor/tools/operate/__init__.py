"""Work on a state that is no stream: erase, repair, copy, backfill, a new registry for the table of a lost one."""
