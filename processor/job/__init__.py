"""The Spark job around its driver: the stream, the lease, the fence, and what it waits for."""
