"""The worlds a scenario can run in. Each turns alternatives and seeds into runs, in the requested order.

This file imports nothing, because the kernel world's child process loads it.
"""
