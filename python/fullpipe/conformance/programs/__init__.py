"""Conformance judged from outside: what the path saw of a sender, whoever it is and in whatever language.

`packets.py` reads a record, `case.py` says what a case is, `cases/` has them, `run.py` runs and judges them.
A case knows the path and what crossed it: delivered bytes, queue, losses. It knows no window and no phase.
../README.md: how to add a case.
"""
