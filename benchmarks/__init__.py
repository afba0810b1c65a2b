"""How fast l2calib is beside what its users would otherwise run: ``python -m benchmarks``."""

import os

# Matrices of a hundred rows gain nothing from threads inside BLAS, and the samplers lose by them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
