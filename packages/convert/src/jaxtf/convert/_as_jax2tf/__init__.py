"""jaxtf where programs look for jax2tf: the modules, and what puts them there."""
