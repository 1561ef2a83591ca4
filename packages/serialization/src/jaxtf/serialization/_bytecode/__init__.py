"""What the bytes of a StableHLO module say of themselves, read without MLIR.

In: a portable artifact. Out: its versions, the types of its functions, whom they call, its custom calls, and what XLA
does not compute as it says.
May import: `_errors`. Knows nothing of JAX, of jaxlib and of the record.
"""
