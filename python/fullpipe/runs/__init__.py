"""Runs are carried out here: in which worlds, by which engines; many, each done once, and kept.

A `Task` is one run. Its address is a hash of everything that decides its result. The `Store` keeps finished
runs under their addresses, many in one file (`pack`). `carry_out` gives an engine the tasks that the store
does not have, and stores their results, so that interrupted sweeps resume.
"""
