"""Gaussian processes: the correlation c, its spectrum over psi, and what is made of it."""
