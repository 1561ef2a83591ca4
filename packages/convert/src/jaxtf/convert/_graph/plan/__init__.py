"""What is done to a program of graph mode before it is emitted, pass by pass, in order.

In: a program as `parse` read it. Out: the program with composites chosen, constants folded, layouts moved.
May import: `_graph` except for `ops`, `emit` and `function`.
"""
