"""A gate for continuous integration: record how a controller behaves, and report each change of it.

gate.toml ──► document.py ──► run.py, conforming.py ──► measured.py ──► baseline.py   `record` writes it
              (cases.py)                                    │               │
                                                        checking.py ◄───────┘         `check` compares
                                                        (judge.py)
                                                            │
                                                        formats.py, output.py
"""
