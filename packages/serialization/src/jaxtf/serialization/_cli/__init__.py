"""The command `jaxtf-artifact`.

In: words of a command line. Out: lines of text, and an exit code.
May import: all others. Commands that need JAX import it when they run.
"""
