"""TensorFlow functions in JAX: eager, under jit, differentiable."""
