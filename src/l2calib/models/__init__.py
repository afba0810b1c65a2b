"""The mathematical model eta(x; theta), by kind."""
