"""Rules for the scaling gamma of a generalised posterior."""
