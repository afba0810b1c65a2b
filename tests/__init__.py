"""The test-suite."""
