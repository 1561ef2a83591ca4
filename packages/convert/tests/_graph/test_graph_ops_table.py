"""The table of graph mode is complete: each operation of the dialects, and each call that JAX writes, is in it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jaxlib.mlir.dialects import chlo, stablehlo

from jaxtf.convert._errors import GraphModeUnsupported
from jaxtf.convert._graph.emit import Emitter
from jaxtf.convert._graph.ops import __all__ as families
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import plan
from jaxtf.convert._graph.table import entries
from jaxtf.serialization.interop import export_for_graph

from .graph_mode import run_graph_mode, run_module

# What reads a module settles these: constants, terminators, and custom calls, which have entries by their targets.
READ = {"stablehlo.constant", "chlo.constant", "stablehlo.return", "stablehlo.custom_call"}

NAMED_BY_THE_EXPORTER = ("eigh", "svd", "eig", "qr", "schur", "hessenberg", "tridiagonal", "geqp3")
WRITTEN_BY_JAX = (
    "Qr",
    "ProductOfElementaryHouseholderReflectors",
    "ApproxTopK",
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "shape_assertion",
    "stablehlo.dynamic_reduce_window",
    "stablehlo.dynamic_rng_bit_generator",
    "stablehlo.dynamic_top_k",
)


def operations_of(dialect):
    classes = vars(dialect).values()
    return {found.OPERATION_NAME for found in classes if hasattr(found, "OPERATION_NAME")}


def test_every_operation_of_the_dialects_has_an_entry_or_a_refusal():
    known = set(entries()) | READ
    assert operations_of(stablehlo) - known == set()
    assert operations_of(chlo) - known == set()


def test_every_custom_call_of_jax_has_an_entry_or_a_refusal():
    wanted = {f"custom_call.{name}" for name in WRITTEN_BY_JAX}
    wanted |= {f"custom_call.jaxtf.{name}" for name in NAMED_BY_THE_EXPORTER}
    assert wanted - set(entries()) == set()


def test_refusals_have_reasons_and_translations_have_docstrings():
    for entry in entries().values():
        if entry.emit is None:
            assert entry.reason, entry.name
        else:
            assert not entry.reason, entry.name


def test_families_are_imported_in_order_of_their_names():
    assert list(families) == sorted(families)


def test_a_refused_operation_is_named_with_its_dtype_and_reason():
    module = "func.func @main() -> tensor<ui32> { %0 = stablehlo.partition_id : tensor<ui32> return %0 : tensor<ui32> }"
    with pytest.raises(GraphModeUnsupported, match=r"stablehlo.partition_id: it asks which of several devices"):
        run_module(module)


def test_a_composite_that_is_avoided_is_decomposed():
    x = np.linspace(-3, 3, 13, dtype=np.float32)
    program = plan(parse(export_for_graph(jax.jit(lax.erf))(x).mlir_module_serialized))

    def operations(avoids):
        run = tf.function(lambda x: Emitter(program, avoids=avoids).main([x]), autograph=False)
        [found] = run(tf.constant(x))
        np.testing.assert_allclose(found, lax.erf(x), rtol=8 * np.finfo(np.float32).eps)
        return {operation.type for operation in run.get_concrete_function(tf.constant(x)).graph.get_operations()}

    assert "Erf" in operations(frozenset())
    assert "Erf" not in operations(frozenset({"chlo.erf"}))


def test_random_bits_of_xla_need_its_operations():
    key = np.array([1, 2, 3, 4], np.uint32)

    def bits(key):
        return lax.rng_bit_generator(key, (5,), dtype=jnp.uint32)

    with pytest.raises(GraphModeUnsupported, match=r"rng_bit_generator: TensorFlow has no plain operation"):
        run_graph_mode(bits, key)
    found = run_graph_mode(bits, key, allows_xla=True)
    np.testing.assert_array_equal(found[1], jax.jit(bits)(key)[1])
