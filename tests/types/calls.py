"""What type checkers see of functions and their options. Not run: `python3 run.py types` checks it."""

from collections.abc import Callable
from typing import Any, assert_type

import jax
import jax.numpy as jnp

from jaxtf.calltf import call_tf
from jaxtf.convert import convert, save_exported, save_model, to_tflite, verify
from jaxtf.serialization import Exported, ExportedModel, deserialize, export, export_model, lift, load

SPEC = jax.ShapeDtypeStruct((2,), jnp.float32)


def twice(x: jax.Array) -> jax.Array:
    """A function to export."""
    return 2 * x


def records(blob: bytes) -> None:
    """What is exported and read is a record; what a record returns when called, its file says and not its type."""
    assert_type(export(twice)(SPEC), Exported)
    assert_type(deserialize(blob), Exported)
    assert_type(load(blob), ExportedModel)
    assert_type(export_model(twice)(SPEC), ExportedModel)
    assert_type(export(twice)(SPEC).vjp(), Exported)
    assert_type(export(twice)(SPEC).serialize(), bytearray)
    assert_type(convert(twice), Callable[..., Any])


def declared_results(f: Callable[..., Any]) -> None:
    """Results that are declared have the structure of the declaration."""
    assert_type(call_tf(f, output_shape_dtype=SPEC)(1.0), jax.Array)
    assert_type(call_tf(f, output_shape_dtype=[SPEC])(1.0), list[jax.Array])
    assert_type(call_tf(f, output_shape_dtype=(SPEC, SPEC))(1.0), tuple[jax.Array, ...])
    assert_type(call_tf(f, output_shape_dtype={"y": SPEC})(1.0), dict[str, jax.Array])
    assert_type(call_tf(f, output_shape_dtype={"y": (SPEC, [SPEC])})(1.0), Any)
    assert_type(call_tf(f)(1.0), Any)


def lists_of_names(blob: bytes) -> None:
    """One text is not a list of texts, though Python takes it for a sequence of such."""
    export(twice, platforms="cpu")  # type: ignore[arg-type]
    export_model(twice, platforms="cpu")  # type: ignore[arg-type]
    convert(twice, native_serialization_platforms="cpu")  # type: ignore[arg-type]
    convert(twice, polymorphic_constraints="a >= b")  # type: ignore[arg-type]
    save_model(twice, {}, "folder", input_signatures=[], platforms="cpu")  # type: ignore[arg-type]
    save_exported(blob, "folder", input_names="xy")  # type: ignore[arg-type]
    to_tflite(twice, polymorphic_constraints="a >= b")  # type: ignore[arg-type]
    verify(twice, SPEC, backends="eager")  # type: ignore[arg-type]
    verify(twice, SPEC, numbers="ties")  # type: ignore[arg-type]
    lift(blob, names="main")  # type: ignore[arg-type]
    export(twice, platforms=["cpu"])
    convert(twice, native_serialization_platforms=("cpu", "cuda"))
