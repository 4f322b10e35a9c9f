"""What makes documents right: the plan of a job, the protocol over the table, and the rounds with their driver. Pure.

Spark, `try` and the simulator run the same engine, each with its own executor and clock. It imports the language, the values, the
settings, and the requests of `statestore` and `registry`. It never imports a client, nor anything of the job.
"""
