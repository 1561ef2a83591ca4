"""SavedModels of JAX functions.

In: a function, its inputs and a folder. Out: the folder, whole or not there.
May import: all of `_convert` and what that may.
"""
