"""The same history through statestore and through other systems. benchmarks/results.md has the table; no peer's code is shipped."""
