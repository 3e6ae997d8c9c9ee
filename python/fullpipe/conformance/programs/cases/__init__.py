"""The cases, a file for each group of questions."""
