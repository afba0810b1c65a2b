"""Arrays and what is done with them, whatever they mean: nothing here knows the paper."""
