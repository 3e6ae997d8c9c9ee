"""Flows as they arrive at a link: lists of them, captured or generated, and how they are replayed.

In reading order: `flow_list` has the list, one row for each transfer, and reads it from captures and files;
`synthetic` generates one from stated distributions; `models` turns a list into the flows of a scenario, in
three ways; `srpt` is the scheduler with which completion times are compared.
"""
