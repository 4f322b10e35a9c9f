"""Spark: its session, source and checkpoint, and the tasks in its workers."""
