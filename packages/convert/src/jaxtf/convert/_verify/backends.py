"""The backends that run a function: a table of small entries, each from a subject to a runner of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from jaxtf.convert._convert.convert import convert
from jaxtf.convert._convert.convert_exported import convert_exported
from jaxtf.convert._values.dtypes import tf_dtype
from jaxtf.convert._verify.numbers import is_inexact
from jaxtf.convert._verify.subject import Subject
from jaxtf.serialization import deserialize

__all__ = ["BACKENDS", "Runner"]

_Arrays = Sequence[Any]


@dataclass(frozen=True)
class Runner:
    """A backend that runs a subject.

    Attributes:
      values: From flat arguments to flat results.
      gradients: From flat arguments and cotangents of the inexact results to the gradients of the inexact arguments;
        None for one that TensorFlow's tape gives none of.
    """

    values: Callable[[_Arrays], _Arrays]
    gradients: Callable[[_Arrays, _Arrays], _Arrays]


# --- JAX ---


def _in_jax(fun: Callable[..., Any]) -> Runner:
    def gradients(arguments: _Arrays, cotangents: _Arrays) -> _Arrays:
        arguments = list(arguments)
        differentiated = [i for i, array in enumerate(arguments) if is_inexact(array.dtype)]

        def inexact(*values: Any) -> Any:
            for i, value in zip(differentiated, values, strict=True):
                arguments[i] = value
            return [result for result in fun(*arguments) if is_inexact(np.dtype(result.dtype))]

        _, pull_back = jax.vjp(inexact, *(arguments[i] for i in differentiated))
        pulled: _Arrays = pull_back(list(map(jax.numpy.asarray, cotangents)))
        return pulled

    return Runner(lambda arguments: fun(*arguments), gradients)


def _jax(subject: Subject) -> Runner:
    """The JAX function itself; of an artifact, what was exported."""
    return _in_jax(subject.in_jax())


def _exported(subject: Subject) -> Runner:
    """`export(fun)(*specs).call` in JAX."""
    return _in_jax(replace(subject, function=None).in_jax())


def _artifact(subject: Subject) -> Runner:
    """The artifact, written and read again, in JAX."""
    exported = deserialize(subject.exported.serialize(vjp_order=0 if subject.no_gradient else 1))
    return _exported(replace(subject, exported=exported))


# --- TensorFlow ---


def _in_tensorflow(subject: Subject, fun: Callable[..., Any]) -> Runner:
    """A TensorFlow function of the flat arguments, to flat results."""
    dtypes = [tf_dtype(aval.dtype) for aval in subject.exported.in_avals]

    def tensors(arguments: _Arrays) -> list[tf.Tensor]:
        return [tf.constant(array, dtype) for array, dtype in zip(arguments, dtypes, strict=True)]

    def gradients(arguments: _Arrays, cotangents: _Arrays) -> _Arrays:
        given = tensors(arguments)
        watched = [tensor for tensor in given if _is_inexact(tensor)]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            results = [result for result in fun(*given) if _is_inexact(result)]
        # TensorFlow's cotangents of complex numbers are the conjugates of JAX's, and so are the gradients.
        weights = [_conjugate(tf.constant(c, r.dtype)) for c, r in zip(cotangents, results, strict=True)]
        pulled = tape.gradient(results, watched, weights)
        return [_gradient(gradient, [tensor], results) for gradient, tensor in zip(pulled, watched, strict=True)]

    return Runner(lambda arguments: fun(*tensors(arguments)), gradients)


def _is_inexact(tensor: tf.Tensor) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)


def _gradient(gradient: tf.Tensor | None, *ends: Sequence[tf.Tensor]) -> tf.Tensor | None:
    """A gradient as JAX has it; None if all at an end are 8-bit floats, which TensorFlow's tape does not watch."""
    if gradient is not None:
        return _conjugate(gradient)
    if not any(all(tensor.dtype.size == 1 for tensor in end) for end in ends):
        raise AssertionError(f"TensorFlow gives no gradient of an argument of {ends[0][0].dtype.name}")
    return None


def _conjugate(tensor: tf.Tensor) -> tf.Tensor:
    return tf.math.conj(tensor) if tensor.dtype.is_complex else tensor


def _flat(subject: Subject, **options: Any) -> Callable[..., list[tf.Tensor]]:
    """The converted function on flat arguments."""
    converted = _converted(subject, **options)
    positional, by_name = subject.exported.in_structure.children
    count = len(positional.paths())

    def flat(*tensors: tf.Tensor) -> list[tf.Tensor]:
        args, kwargs = positional.unflatten(tensors[:count]), by_name.unflatten(tensors[count:])
        return jax.tree.leaves(converted(*args, **kwargs))

    return flat


def _converted(subject: Subject, **options: Any) -> Callable[..., Any]:
    """What a user writes: `convert(fun, polymorphic_shapes=...)`, or `convert_exported` of an artifact."""
    options = options | {"with_gradient": not subject.no_gradient}
    if subject.function is None:
        return convert_exported(subject.exported, **options)
    return convert(
        subject.function,
        polymorphic_shapes=subject.polymorphic_shapes(),
        polymorphic_constraints=subject.polymorphic_constraints(),
        **options,
    )


def _eager(subject: Subject) -> Runner:
    """TensorFlow's eager mode."""
    return _in_tensorflow(subject, _flat(subject))


def _graph(subject: Subject) -> Runner:
    """`tf.function`."""
    return _in_tensorflow(subject, tf.function(_flat(subject), autograph=False, input_signature=_specs(subject)))


def _compiled(subject: Subject) -> Runner:
    """`tf.function(jit_compile=True)`."""
    options = {"autograph": False, "input_signature": _specs(subject), "jit_compile": True}
    return _in_tensorflow(subject, tf.function(_flat(subject), **options))


def _specs(subject: Subject) -> list[tf.TensorSpec]:
    return [
        tf.TensorSpec([size if isinstance(size, int) else None for size in aval.shape], tf_dtype(aval.dtype))
        for aval in subject.exported.in_avals
    ]


def _saved(subject: Subject, **options: Any) -> Runner:
    module = tf.Module()
    module.f = tf.function(_flat(subject, **options), autograph=False, input_signature=_specs(subject))
    with tempfile.TemporaryDirectory() as folder:
        save = tf.saved_model.SaveOptions(experimental_custom_gradients=not subject.no_gradient)
        tf.saved_model.save(module, folder, options=save)
        loaded = tf.saved_model.load(folder)
    return _in_tensorflow(subject, loaded.f)


def _saved_model(subject: Subject) -> Runner:
    """A SavedModel, written and loaded again."""
    return _saved(subject)


def _graph_mode(subject: Subject) -> Runner:
    """Graph mode: regular TensorFlow operations."""
    fun = tf.function(_flat(subject, native_serialization=False), autograph=False, input_signature=_specs(subject))
    return _in_tensorflow(subject, fun)


def _graph_mode_saved(subject: Subject) -> Runner:
    """A SavedModel of graph mode."""
    return _saved(subject, native_serialization=False)


BACKENDS: Mapping[str, Callable[[Subject], Runner]] = {
    "jax": _jax,
    "exported": _exported,
    "artifact": _artifact,
    "eager": _eager,
    "graph": _graph,
    "compiled": _compiled,
    "saved_model": _saved_model,
    "graph_mode": _graph_mode,
    "graph_mode_saved_model": _graph_mode_saved,
}
