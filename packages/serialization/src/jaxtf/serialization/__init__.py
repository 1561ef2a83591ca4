"""JAX functions exported to StableHLO with symbolic shapes, and artifacts that last."""
