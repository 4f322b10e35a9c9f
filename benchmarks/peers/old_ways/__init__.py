"""The two designs that statestore replaces, measured over the same changes. docs/benchmarks.md has the tables."""
