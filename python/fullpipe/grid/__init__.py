"""Grids: many scenarios run in both worlds, and how far the worlds are apart over all of them.

`document` reads a grid file into cells, `compare` judges a cell, `summary` all of them against the targets,
`run` runs a grid, and `tables`, `write` and `page` show the results.
"""
