"""The verbs of a job and its state: run, look, repair."""
