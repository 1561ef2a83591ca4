"""TFLite models of JAX functions.

In: a function and its inputs. Out: the bytes of a model.
May import: all of `_convert`, and the inputs of `_saved_model`.
"""
