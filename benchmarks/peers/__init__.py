"""The same history through statestore and through other systems. docs/benchmarks.md has the table; no peer's code is shipped."""
