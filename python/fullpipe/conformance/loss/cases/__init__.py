"""One file for each theme, with a tuple `CASES`."""
