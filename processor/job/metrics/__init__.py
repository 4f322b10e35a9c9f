"""The metrics of a job: one list, and the forms in which the job shows them."""
