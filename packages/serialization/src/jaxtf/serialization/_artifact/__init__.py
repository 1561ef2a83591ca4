"""The bytes of an artifact: their schema, reading, writing, and the trailer; nothing of JAX."""
