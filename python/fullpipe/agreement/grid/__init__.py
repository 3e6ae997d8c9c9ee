"""Grids: many scenarios run in two worlds, and how far the worlds are apart over all of them.

`document` reads a grid file into cells, `run` runs it, `compare` judges a cell, and `summary` judges all of
them against the targets; `rules` states the tolerances. `fullpipe.report.grid` shows the results.
"""
