"""A pytest plugin, `-p with_jaxtf`: the tests of a package run with jaxtf in the place of jax2tf."""

from jaxtf.convert import install_as_jax2tf

install_as_jax2tf()
