"""How to try a recommendation on real connections: the experiment, and what its results show."""
