"""Engines turn a log density with its starts into weighted points, and say how good they are."""
