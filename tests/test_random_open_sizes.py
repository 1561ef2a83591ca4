"""What is known of open sizes before a module runs is so: sizes that do not fit are refused wherever they meet.

A fixed few are tried always; JAXTF_FULL=1 tries `RANDOM_PROGRAMS` on each backend, 500 if it is not set, others each
time (the session `random_programs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, note
from hypothesis import strategies as st

from jaxtf.convert import ArgumentTypeError, ConversionOptionError, GraphModeUnsupported, convert_stablehlo

from .drawing import drawn
from .open_modules import INTEGER, Body, Looks, Misfit, modules

# XLA has no loops whose arrays grow.
_OF_XLA = "Input and output shapes of loop body do not match"


def traced(text: str, arguments: Sequence[Any], *, compiled: bool) -> Callable[..., Any]:
    specs = [tf.TensorSpec([], tf.int32) if type_ == INTEGER else tf.TensorSpec(type_) for type_ in arguments]
    return tf.function(convert_stablehlo(text), specs, autograph=False, jit_compile=compiled)


BACKENDS: Mapping[str, Callable[[str, Sequence[Any]], Callable[..., Any]]] = {
    "eager": lambda text, arguments: convert_stablehlo(text),
    "graph": lambda text, arguments: traced(text, arguments, compiled=False),
    "compiled": lambda text, arguments: traced(text, arguments, compiled=True),
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_sizes_that_do_not_fit_are_refused_and_others_give_their_numbers(backend):
    @given(st.data())
    @drawn(20, 500)
    def runs(data):
        # Where a slice ends at a value, XLA does not know it when it compiles, and cuts what is beyond the array.
        text, main = data.draw(modules(slices_by_values=backend != "compiled"))
        note(text)
        sizes = st.sampled_from(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=2), label="sizes"))
        shapes = [[data.draw(sizes) for _ in type_] for type_ in main.arguments if type_ != INTEGER]
        random = np.random.default_rng(0)
        args = [random.integers(-3, 4, shape).astype(np.float32) for shape in shapes]
        args.append(np.int32(data.draw(sizes)))
        note(f"{shapes}, {args[-1]}")
        try:
            found = BACKENDS[backend](text, main.arguments)(*map(tf.constant, args))
        except (ArgumentTypeError, ConversionOptionError, GraphModeUnsupported):
            # What is known to disagree does not have to run.
            refuses(main, args, Looks.ALL)
            return
        except tf.errors.InvalidArgumentError as error:
            if _OF_XLA in str(error):
                return
            refuses(main, args, Looks.ALL if backend == "compiled" else Looks.RUN)
            return
        expected = main.run(args, Looks.NEEDED)
        for ours, theirs in zip(found if isinstance(found, tuple) else [found], expected, strict=True):
            assert tuple(ours.shape) == theirs.shape
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)

    runs()


def refuses(main: Body, args: Sequence[Any], looks: Looks) -> None:
    with pytest.raises(Misfit):
        main.run(args, looks)
