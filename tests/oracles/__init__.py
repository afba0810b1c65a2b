"""Slow reference implementations, written from the paper's formulas.

Nothing here imports the library: plain NumPy and SciPy, dense matrices, one
dataset at a time, no shared factorisation and no low-rank formula. They exist
so that a fast formula and its oracle cannot share a mistake.
"""
