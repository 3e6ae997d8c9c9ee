"""An active measurement of the path between two machines that both run Fullpipe.

`server` and `client` are the two ends; `control` is what they say to each other, and who may. `stages` are
the experiments, in their order. `stamps` has what was measured, and `analysis` makes estimates of it without
a network. `path_file`, `validation` and `page` write the answer.
"""
