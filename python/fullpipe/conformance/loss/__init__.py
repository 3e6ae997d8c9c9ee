"""The cases of loss-based controllers: CUBIC, Reno, and their slow starts, by the RFCs.

A newcomer adds a play to a file of `cases/`, and a mistake that it catches to `MISTAKES` in
`tests/test_conform_loss.py`. `LossCase` (`case.py`) is a `Case` with the traits that a controller needs
for it to apply; `play.py` has what plays share. The rules are those of `fullpipe/conformance/README.md`; a
criterion or a set-up that proves to be a misreading is replaced, and listed in `replaced.py`.
"""
