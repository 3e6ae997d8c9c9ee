"""Cases that show whether a controller is a BBRv3: each a scenario, what it must show, and the number for it.

`case.py` says what a case is, `stage.py` what it plays on, `cases/` has them, `run.py` plays them. No case
names a world. README.md: how to add a case.
"""
