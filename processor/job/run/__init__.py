"""A run: Spark with its stream and workers, the lease and the fence, the topics with their epochs, and what the job waits for."""
