"""The rounds of a job: one round and its stages, the runner of the steps, the driver that says what is due, and `try`. Pure.

It knows no Spark and no client: an executor brings both.
"""
