"""The papers: a package each, with a file for each claim."""
