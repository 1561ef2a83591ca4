"""The gradient of what `tf.vectorized_map` computed of a converted function, for all elements at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

__all__ = ["gradient_for_all"]


def gradient_for_all(
    gradient: Callable[..., Sequence[tf.Tensor | None]], varies: Sequence[bool]
) -> Callable[..., list[tf.Tensor | None]]:
    """The gradient of what `tf.vectorized_map` computed, by that of one element.

    Args:
      gradient: As of `_tf.graph_results`.
      varies: Of each argument, whether it has the elements as a dimension in front; the cotangents of one that is the
        same for all elements are added up.
    """

    def gradient_of_all(
        results: Sequence[tf.Tensor], arguments: Sequence[tf.Tensor], *cotangents: tf.Tensor | None
    ) -> list[tf.Tensor | None]:
        known = [i for i, cotangent in enumerate(cotangents) if cotangent is not None]
        own = [i for i, of_each in enumerate(varies) if of_each]
        are_there: list[bool] = []

        def of_one(elements: Any) -> list[tf.Tensor]:
            given, of_element, of_results = elements
            of_all, of_arguments = list(arguments), [None] * len(cotangents)
            for place, value in zip(own, of_element, strict=True):
                of_all[place] = value
            for place, value in zip(known, of_results, strict=True):
                of_arguments[place] = value
            pulled = gradient(given, of_all, *of_arguments)
            are_there[:] = [each is not None for each in pulled]
            return [each for each in pulled if each is not None]

        of_results = [tf.convert_to_tensor(cotangents[i]) for i in known]
        found = iter(tf.vectorized_map(of_one, (list(results), [arguments[i] for i in own], of_results)))
        pulled = [next(found) if is_there else None for is_there in are_there]
        return [
            each if each is None or of_each else tf.reduce_sum(each, 0)
            for each, of_each in zip(pulled, varies, strict=True)
        ]

    return gradient_of_all
