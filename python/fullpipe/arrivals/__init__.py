"""Flows as they arrive at a link: lists of them, from captures or made up, and how they are replayed.

In reading order: `flow_list` has the list, one row a transfer, and reads it from captures and files;
`synthetic` makes one up from stated distributions; `models` turns a list into the flows of a scenario, in
three ways; `srpt` is the scheduler against which completion times are held.
"""
