"""The benchmarks, which `make bench` runs. benchmarks/results.md has their last tables."""
