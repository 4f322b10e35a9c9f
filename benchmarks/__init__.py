"""What the project costs, measured: `make bench`. docs/benchmarks.md says how, and keeps the last table."""
