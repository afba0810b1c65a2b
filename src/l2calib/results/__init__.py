"""What a user holds in the end: labels, tables and files around posteriors."""
