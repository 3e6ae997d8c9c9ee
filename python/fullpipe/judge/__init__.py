"""How worlds are judged: agreement on a scenario or a grid, trust in the kernel world, replay."""
