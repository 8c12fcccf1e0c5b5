"""Echelon's benchmark: ``python -m benchmarks`` in the root of the repository, see docs/results/performance.md."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before any of its modules imports NumPy: one core is measured
