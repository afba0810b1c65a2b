"""Calibration methods, each in a file of its own, and the catalogue that lists them."""
