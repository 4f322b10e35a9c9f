"""The benchmarks, which `make bench` runs. docs/benchmarks.md describes them and has their last tables."""
