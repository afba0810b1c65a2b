"""Simulation studies: configurations, sizes, error laws and methods, repeated many times (paper, Section 4)."""
