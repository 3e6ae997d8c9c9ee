"""How results are shown: tables for the terminal, figures, and pages. Nothing here runs or measures."""
