"""How numbers, words and tables are shown to people, wherever they are (docs/decisions/0011)."""
