"""`verify`: one function on all the backends that run it, compared; behind `jaxtf-verify` and behind tests."""
