"""The trainer on a GPU: ``python -m benchmarks.gpu --help``, and docs/results/gpu.md, made from its results."""
