"""The same history through statestore and other systems. benchmarks/results.md has the table; no peer's code is shipped."""
