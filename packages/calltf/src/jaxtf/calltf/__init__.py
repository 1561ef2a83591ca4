"""TensorFlow functions in JAX: eager, under jit, differentiable."""

from jaxtf.calltf._call import call_tf

__all__ = ["call_tf"]
