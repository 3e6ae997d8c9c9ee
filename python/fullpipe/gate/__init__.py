"""A gate for continuous integration: record how a controller behaves, and report each change of it.

gate.toml ──► document.py ──► run.py ──► measured.py ──► baseline.py   `record` writes it
              (cases.py)                     │               │
                                             └── judge.py ◄──┘         `check` compares
                                                    │
                                                answer.py ──► formats.py, figures.py
"""
