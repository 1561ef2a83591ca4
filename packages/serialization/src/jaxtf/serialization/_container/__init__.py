"""What an artifact, or a program with its weights, is read from: a path, a file or bytes; and the parts of the latter.

In: a path, a file that is open, or bytes. Out: ranges of bytes; the header and manifest of a file with weights.
May import: `_errors`. Knows nothing of what a program or an array is.
"""
