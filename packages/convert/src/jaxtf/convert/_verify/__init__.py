"""`verify`: one function in all the ways that run it, compared; behind `jaxtf-verify` and behind tests."""
