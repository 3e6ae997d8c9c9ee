"""Sweeps that can be trusted: many runs, each done once, however often the sweep is begun.

A `Task` is one run and knows its address, a hash of everything that decides its result. The `Store` keeps a
finished run under its address as one file. `carry_out` hands an engine what the store does not have and keeps
what comes back, so that an interrupted sweep goes on where it stopped.
"""
