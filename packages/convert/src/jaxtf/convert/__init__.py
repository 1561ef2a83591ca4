"""JAX functions in TensorFlow: eager, tf.function, jit_compile and SavedModel."""
