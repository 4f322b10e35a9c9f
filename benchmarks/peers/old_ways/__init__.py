"""The two designs that statestore replaces, measured over the same changes. benchmarks/results.md has the tables."""
