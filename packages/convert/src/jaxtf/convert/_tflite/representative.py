"""Representative data of `to_tflite`, checked: what TFLite's converter runs to see the ranges of numbers.

The user gives the arguments of each sample in their order. The model that TFLite makes has an order of its own for its
inputs, that of a hash table: a list in any other would be refused where shapes differ, and give each input the range of
another where they do not. So the samples are given by name, and TFLite finds the place of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jaxtf.convert._errors import ConversionOptionError
from jaxtf.convert._tflite.size_checks import SizeChecks
from jaxtf.convert._values.arguments import refuse_masked

__all__ = ["checked_samples"]

_Sample = dict[str, np.ndarray[Any, Any]]


def checked_samples(
    representative_data: Any, specs: Mapping[str, tf.TensorSpec], checks: SizeChecks | None
) -> list[_Sample]:
    """The samples, each with its arrays by the names of the inputs.

    Args:
      representative_data: For each sample a list with an array for each input.
      specs: Of the inputs by name, in the order of the lists.
      checks: What else is required of their sizes: the converter runs the function without that.

    Raises:
      ConversionOptionError: There are no samples, or one is not such a list: its shapes or dtypes are others.
    """
    if not isinstance(representative_data, Iterable) or isinstance(representative_data, str | bytes | Mapping):
        raise ConversionOptionError(
            "representative_data must be a list of samples, each a list with one array for each input. "
            f"Got: {_described(representative_data)}\n  remedy: {_remedy(specs)}"
        )
    samples = [_sample(sample, specs, f"representative_data[{i}]") for i, sample in enumerate(representative_data)]
    if not samples:
        raise ConversionOptionError(
            "representative_data holds no samples: without any there are no ranges to make int8 of\n"
            "  remedy: give a hundred or so; a generator that was read before is empty, so make a list of it"
        )
    if checks is not None:
        _check_sizes(samples, checks)
    return samples


def _check_sizes(samples: Sequence[_Sample], checks: SizeChecks) -> None:
    """Refuses samples of sizes that do not fit together."""
    seen: set[tuple[tuple[int, ...], ...]] = set()
    for index, sample in enumerate(samples):
        shapes = tuple(array.shape for array in sample.values())
        if shapes not in seen and not checks.allow(sample):
            found = ", ".join(f"'{name}' of shape {array.shape}" for name, array in sample.items())
            raise ConversionOptionError(
                f"representative_data[{index}] must have sizes that the polymorphic shapes allow. Got: {found}"
            )
        seen.add(shapes)


def _sample(sample: Any, specs: Mapping[str, tf.TensorSpec], where: str) -> _Sample:
    if not isinstance(sample, list | tuple):
        raise ConversionOptionError(
            f"{where} must be a list with one array for each input. Got: {_described(sample)}\n"
            f"  remedy: {_remedy(specs)}"
        )
    if len(sample) != len(specs):
        raise ConversionOptionError(
            f"{where} must have one array for each input, {len(specs)} in all. Got: {len(sample)}\n"
            f"  remedy: {_remedy(specs)}"
        )
    return {
        name: _array(value, spec, f"{where}[{index}]", name)
        for index, (value, (name, spec)) in enumerate(zip(sample, specs.items(), strict=True))
    }


def _array(value: Any, spec: tf.TensorSpec, where: str, name: str) -> np.ndarray[Any, Any]:
    refuse_masked(value, lambda: where)
    found, dtype = np.asarray(value), np.dtype(spec.dtype.as_numpy_dtype)
    if not np.can_cast(found.dtype, dtype, "same_kind") or not spec.shape.is_compatible_with(found.shape):
        raise ConversionOptionError(
            f"{where} must be an array for the input '{name}', {spec.dtype.name} of shape {tuple(spec.shape)}. "
            f"Got: {found.dtype} of shape {found.shape}"
        )
    made = found.astype(dtype, copy=False)
    if spec.dtype.is_integer and not np.array_equal(made, found):
        raise ConversionOptionError(
            f"{where} must be an array for the input '{name}', whose dtype {spec.dtype.name} has integers from "
            f"{spec.dtype.min} to {spec.dtype.max}. Got: numbers from {found.min()} to {found.max()}"
        )
    return made


def _described(value: Any) -> str:
    """A value in a few words: what an array holds says nothing here."""
    if hasattr(value, "shape"):
        return f"{type(value).__name__} of shape {tuple(value.shape)}"
    return type(value).__name__ if isinstance(value, Mapping) else f"{value!r:.60}"


def _remedy(specs: Mapping[str, tf.TensorSpec]) -> str:
    names = ", ".join(specs)
    return (
        f"[[{names}] for {names} in ...]" if len(specs) > 1 else f"[[{names}] for {names} in ...], also for one input"
    )
