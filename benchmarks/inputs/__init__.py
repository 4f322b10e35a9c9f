"""The records and the rows that benchmarks begin with."""
