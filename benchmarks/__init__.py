"""Echelon's benchmark: ``python -m benchmarks`` in the root of the repository, see docs/performance.md."""
