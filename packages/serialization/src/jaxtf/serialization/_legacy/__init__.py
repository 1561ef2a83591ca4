"""What today's JAX no longer reads: shardings and custom calls of old releases."""
