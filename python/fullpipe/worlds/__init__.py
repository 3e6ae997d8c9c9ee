"""The worlds a scenario can run in. Each turns alternatives and seeds into runs, in the order asked for.

This file imports nothing: the kernel world's child process passes through it.
"""
