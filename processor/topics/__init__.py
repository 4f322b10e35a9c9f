"""The topics of a job: those it reads, their epochs and moves, those it publishes to, and the dead letters."""
