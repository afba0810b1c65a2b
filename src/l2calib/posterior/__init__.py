"""Posteriors as weighted points, and all that is reported of them."""
