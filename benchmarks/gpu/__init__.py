"""The trainer on a GPU: ``python -m benchmarks.gpu --help``, and docs/gpu.md, which is made from its results."""
