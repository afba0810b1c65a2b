"""How numbers and tables are shown to people, wherever they are."""
