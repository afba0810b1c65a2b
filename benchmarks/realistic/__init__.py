"""How methods do on random problems as people bring them: ``python -m benchmarks.realistic``."""
