"""How a judged grid is shown: tables, a page, and the table in the documentation."""
