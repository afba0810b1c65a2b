"""How a method does on nine further problems, each by name: ``python -m benchmarks.named``."""
