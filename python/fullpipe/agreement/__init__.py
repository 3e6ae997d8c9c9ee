"""How far two worlds are apart, on one scenario or on a grid of many."""
