"""The bytes of a record: written, read, described; no JAX.

In: an `Exported`, or the bytes of an artifact. Out: the other one, or a description of what the bytes hold.
May import: `_errors`, `_bytecode`, `_container`, `_record`.
"""
