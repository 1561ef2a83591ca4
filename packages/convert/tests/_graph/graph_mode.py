"""Programs in graph mode, for the tests of its operations: a JAX function or a module's text, run in every mode."""

import os

import jax
import ml_dtypes
import numpy as np
import tensorflow as tf
from hypothesis import HealthCheck, settings

from jaxtf.convert._graph.emit import Emitter
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.serialization.interop import export_for_graph
from jaxtf.shapepoly import symbolic_shape

MODES = ("eager", "graph", "compiled")


def in_mode(function, mode):
    """The function as users run it in a mode."""
    return function if mode == "eager" else tf.function(function, autograph=False, jit_compile=mode == "compiled")


FULL = os.environ.get("JAXTF_FULL") == "1"


def allows_xla_in(mode):
    """What a test of that mode takes unless it says: what users have, but for graphs, which other runtimes take too."""
    return mode != "graph"


def drawn(fewer):
    """Settings of a test that draws cases: the same each time; with JAXTF_FULL=1, RANDOM_PROGRAMS others."""
    return settings(
        max_examples=int(os.environ.get("RANDOM_PROGRAMS", "300")) if FULL else fewer,
        deadline=None,
        derandomize=not FULL,
        backend="hypothesis-urandom" if FULL else "hypothesis",  # each case anew
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def run_module(module, *arguments, mode="graph", allows_xla=None):
    """The results of a module, portable or text, as NumPy arrays."""
    allows_xla = allows_xla_in(mode) if allows_xla is None else allows_xla
    program = plan(parse(module), allows_xla)

    def run(*tensors):
        return Emitter(program, allows_xla).main(tensors)

    if mode != "eager":
        run = tf.function(run, autograph=False, jit_compile=mode == "compiled")
    return [np.asarray(result.numpy()) for result in run(*map(tf.constant, arguments))]


def operations(module, *shapes, compiled):
    """The types of the operations that a module is for other consumers, for arguments of float32."""
    program = plan(parse(module), False)
    traced = tf.function(lambda *tensors: Emitter(program, False).main(tensors), autograph=False, jit_compile=compiled)
    graph = traced.get_concrete_function(*map(tf.TensorSpec, shapes)).graph
    return [operation.type for operation in graph.get_operations()]


def run_graph_mode(function, *arguments, mode="graph", allows_xla=None):
    """The leaves of what a JAX function gives in graph mode."""
    exported = export_for_graph(jax.jit(function))(*arguments)
    leaves = jax.tree.leaves(arguments)
    kept = [np.asarray(jax.numpy.asarray(leaves[index])) for index in exported.module_kept_var_idx]
    return run_module(exported.mlir_module_serialized, *kept, mode=mode, allows_xla=allows_xla)


def run_with_open_sizes(function, arguments, names, mode="graph"):
    """As `run_graph_mode` of arrays, where `names` gives for each its shape with names for sizes that are left open."""
    texts = [",".join(map(str, shape)) for shape in names]
    scope = symbolic_shape("scope")[0].scope
    specs = [
        jax.ShapeDtypeStruct(symbolic_shape(text, scope=scope) if text else (), argument.dtype)
        for text, argument in zip(texts, arguments, strict=True)
    ]
    exported = export_for_graph(jax.jit(function))(*specs)
    kept = [arguments[index] for index in exported.module_kept_var_idx]
    shapes = [names[index] for index in exported.module_kept_var_idx]
    allows_xla = allows_xla_in(mode)
    program = plan(parse(exported.mlir_module_serialized), allows_xla)

    def run(*tensors):
        return Emitter(program, allows_xla).main(tensors)

    if mode != "eager":
        signature = [
            tf.TensorSpec([size if isinstance(size, int) else None for size in shape], argument.dtype)
            for shape, argument in zip(shapes, kept, strict=True)
        ]
        run = tf.function(run, autograph=False, jit_compile=mode == "compiled", input_signature=signature)
    return [np.asarray(result.numpy()) for result in run(*map(tf.constant, kept))]


def run_jax(function, *arguments):
    """The leaves of what it gives in JAX."""
    return [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*arguments))]


def assert_identical(found, expected):
    """Equal bit by bit, but for the bits of NaN."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if jax.dtypes.issubdtype(ours.dtype, np.floating):
            signs = [np.signbit(x) & ~np.isnan(x) for x in (ours.astype(np.float64), theirs.astype(np.float64))]
            np.testing.assert_array_equal(*signs)
            np.testing.assert_array_equal(ours.astype(np.float64), theirs.astype(np.float64))
        else:
            np.testing.assert_array_equal(ours, theirs)


def assert_rounded(found, expected, max_error_in_eps):
    """Equal within that many eps of the dtype, relative to each element; NaN and infinities in the same places."""
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        if not jax.dtypes.issubdtype(ours.dtype, np.inexact):
            np.testing.assert_array_equal(ours, theirs)
            continue
        tolerance = max_error_in_eps * float(ml_dtypes.finfo(ours.dtype).eps)
        tiny = float(ml_dtypes.finfo(ours.dtype).tiny)
        wide = np.complex128 if ours.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(ours.astype(wide), theirs.astype(wide), rtol=tolerance, atol=max_error_in_eps * tiny)


def same_as_jax(function, *arguments, mode="graph", allows_xla=None, max_error_in_eps=0):
    """Asserts that graph mode gives JAX's results, exactly or within that many eps."""
    found = run_graph_mode(function, *arguments, mode=mode, allows_xla=allows_xla)
    expected = run_jax(function, *arguments)
    if max_error_in_eps:
        assert_rounded(found, expected, max_error_in_eps)
    else:
        assert_identical(found, expected)
