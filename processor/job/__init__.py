"""The Spark job: the stream, the lease, the fence, and the workers."""
