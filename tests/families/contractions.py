"""Products summed over dimensions, and convolutions, with any dimension numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from hypothesis import strategies as st
from jax import lax

from .case import COMPLEX, FLOATS, SIGNED, UNSIGNED, Argument, Case, Draw, Sizes, dtypes

__all__ = ["convolution", "dot_general", "fused"]


@st.composite
def dot_general(draw: Draw) -> Case:
    """`dot_general` with any number of batching, contracting and free dimensions, none of each included.

    Operands of floats may differ, and the result has any dtype that JAX takes: often one that does not hold the sums.
    """
    sizes = Sizes(draw)
    batch, contracted, left, right = (
        [sizes.size(0 if rare else 1, 4) for _ in range(draw(st.integers(0, 2)))]
        for rare in draw(st.lists(st.sampled_from([0, 0, 0, 1]), min_size=4, max_size=4))
    )
    sides, numbers = [], []
    for free in (left, right):
        dims = [*(("b", i) for i in range(len(batch))), *(("c", i) for i in range(len(contracted)))]
        dims += [("f", i) for i in range(len(free))]
        order = draw(st.permutations(dims))
        parts = {"b": batch, "c": contracted, "f": free}
        sides.append(tuple(parts[kind][i] for kind, i in order))
        numbers.append(
            (
                tuple(order.index(("c", i)) for i in range(len(contracted))),
                tuple(order.index(("b", i)) for i in range(len(batch))),
            )
        )
    dtype = draw(dtypes(FLOATS, SIGNED, UNSIGNED, COMPLEX))
    other = draw(st.sampled_from([dtype, dtype, *FLOATS])) if dtype in FLOATS else dtype
    preferred = draw(st.sampled_from([None, *_results_of(dtype)])) if draw(st.booleans()) else None
    kinds = {_kind(name) for name in (dtype, preferred or dtype)}
    loses_imaginary = dtype in COMPLEX and preferred is not None and preferred not in COMPLEX
    values: list[Any] = ["small", "small"]
    is_exact = kinds <= {"int"} or (preferred is not None and dtype in ("float32", "float64") and draw(st.booleans()))
    if is_exact:
        values = ["bits", "bits"] if kinds <= {"int"} else draw(st.sampled_from(EXACT_SUMS))
    (left_contracted, left_batch), (right_contracted, right_batch) = numbers
    dimension_numbers = ((left_contracted, right_contracted), (left_batch, right_batch))

    def function(a: Any, b: Any) -> Any:
        return lax.dot_general(a, b, dimension_numbers, preferred_element_type=preferred)

    return Case(
        f"dot_general {dimension_numbers}, {preferred}",
        function,
        tuple(map(Argument, sides, (dtype, other), values)),
        sizes.symbolic,
        by_element=is_exact,
        has_derivative=not is_exact and (preferred is None or "int" not in kinds),
        tags=frozenset({"real product of complex"} if loses_imaginary else ()),
    )


# Numbers of each operand whose sums of products are exact in float32, and others in 16 bits; or too large for those.
EXACT_SUMS = (
    ((1 + 2**-11, -1 - 2**-11, 1.0, -1.0), (1.0, -1.0, 0.0)),
    ((-16.0, -1.5, 0.25, 0.5, 2.5, 16.0), (-3.5, 0.5, 1.5, 16.0)),
    ((-4096.0, -384.0, 64.0, 4096.0), (-4.0, 0.5, 16.0, 16.0)),
)


def _kind(dtype: str) -> str:
    return "int" if dtype in (*SIGNED, *UNSIGNED) else "complex" if dtype in COMPLEX else "float"


def _results_of(dtype: str) -> list[str]:
    """The dtypes that JAX takes for the result of a product of this one.

    Of complex numbers those without sign are left out: XLA does not define what a number below 0 becomes.
    """
    names = [*FLOATS, *SIGNED, *COMPLEX, *(() if dtype in COMPLEX else UNSIGNED)]
    least = jnp.dtype(dtype).itemsize
    return names if dtype in FLOATS else [name for name in names if jnp.dtype(name).itemsize >= least]


@st.composite
def convolution(draw: Draw) -> Case:
    """`conv_general_dilated` with any layout, strides, dilations, groups and padding, also negative.

    Half of the operands of real floats have infinities and NaN.
    """
    sizes = Sizes(draw)
    rank = draw(st.sampled_from([1, 2, 2, 2, 3]))
    spatial = [sizes.size(0 if not draw(st.integers(0, 9)) else 1, 5) for _ in range(rank)]
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    if rank < 3 and not draw(st.integers(0, 5)):  # kernels of TensorFlow have code of their own for long ones
        long = draw(st.integers(0, rank - 1))
        spatial[long], kernel[long] = draw(st.integers(30, 48)), draw(st.integers(7, 24))

    def each(low: int, high: int) -> tuple[int, ...]:
        return tuple(draw(st.one_of(st.just(max(low, 1)), st.integers(low, high))) for _ in range(rank))

    feature_groups, batch_groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (3, 1), (1, 2)]))
    inputs, outputs = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    batch = sizes.size(1, 3) if batch_groups == 1 else batch_groups * draw(st.integers(1, 2))
    strides, dilation, kernel_dilation = each(1, 3), each(1, 2), each(1, 2)
    if any(sizes.least(n) == 1 and length > 1 for n, length in zip(spatial, kernel, strict=True)):
        dilation = (1,) * rank  # XLA may end the process, of JAX too: docs/troubleshooting.md
    if draw(st.booleans()):
        padding: Any = [tuple(draw(st.integers(-1, 2)) for _ in range(2)) for _ in range(rank)]
    else:
        padding = draw(st.sampled_from(["SAME", "VALID", "SAME_LOWER"]))
    letters = "HWD"[:rank]
    lhs, out = ("".join(draw(st.permutations("NC" + letters))) for _ in range(2))
    rhs = "".join(draw(st.permutations("OI" + letters)))
    groups = feature_groups * batch_groups

    def arranged(layout: str, values: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(values[letter] for letter in layout)

    operand = arranged(lhs, {"N": batch, "C": inputs * feature_groups, **dict(zip(letters, spatial, strict=True))})
    weights = arranged(rhs, {"I": inputs, "O": outputs * groups, **dict(zip(letters, kernel, strict=True))})
    dtype = draw(dtypes(FLOATS, FLOATS, SIGNED, UNSIGNED, COMPLEX))
    reversal = draw(st.sampled_from([None, None, (True,) * rank])) if isinstance(padding, list) else None
    values = draw(st.sampled_from(["small", "special"])) if dtype in FLOATS else "small"
    is_cut = isinstance(batch, str) and not draw(st.integers(0, 2))

    def function(x: Any, k: Any, crops: bool = False) -> Any:
        edges = padding
        if is_cut:  # a batch of which there may be none
            x = lax.slice_in_dim(x, 1, None, axis=lhs.index("N"))
        if reversal:
            k = jnp.flip(k, [rhs.index(letter) for letter in letters])
        if crops:
            in_order = [letter for letter in rhs if letter in letters]  # that of the kernel
            lows = {letter: min(low, 0) for letter, (low, _) in zip(in_order, padding, strict=True)}
            x = lax.pad(x, jnp.zeros((), x.dtype), [(lows.get(letter, 0), 0, 0) for letter in lhs])
            edges = [(max(low, 0), high) for low, high in padding]
        return lax.conv_general_dilated(
            x,
            k,
            strides,
            edges,
            dilation,
            kernel_dilation,
            (lhs, rhs, out),
            feature_groups,
            batch_groups,
        )

    return Case(
        f"convolution {lhs},{rhs},{out} strides {strides} padding {padding} dilations {dilation}, {kernel_dilation} "
        f"groups {feature_groups}, {batch_groups}, of {values} numbers" + " but for the first of the batch" * is_cut,
        function,
        (Argument(operand, dtype, values), Argument(weights, dtype)),
        sizes.symbolic,
        # The XLA of JAX 0.10 for CPU reads other memory if padding takes elements away before and adds some after.
        in_jax=partial(function, crops=True) if isinstance(padding, list) and set(dilation) == {1} else None,
        tags=frozenset({values, f"{'groups' if groups > 1 else 'one group'} of {dtype}", "cut" if is_cut else ""}),
    )


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x,
    "relu": jax.nn.relu,
    "relu6": jax.nn.relu6,
    "elu": jax.nn.elu,
    "leaky_relu": jax.nn.leaky_relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "gelu": jax.nn.gelu,
    "erf gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "mish": jax.nn.mish,
    "larger": lambda x: jnp.maximum(x, 2 * x),
    "like gelu": lambda x: (jnp.tanh((x + 0.04 * x * x * x) * 0.8) + 1) * 0.5 * x,
    "like erf gelu": lambda x: (lax.erf(x * 0.7) + 1) * 0.5 * x,
}
# Those that have a number or NaN for infinity, whatever is rounded.
OF_SPECIAL = ("relu", "relu", "relu", "relu", "relu6", "none", "elu", "leaky_relu", "tanh", "sigmoid", "larger")
# What gives its operand, by a number that TensorFlow computes when it optimizes a graph.
NEUTRAL: dict[str, Callable[[Any], Any]] = {
    "times a computed 1": lambda x: x * jnp.max(jnp.ones(2, x.dtype)),
    "and a computed 0": lambda x: x + jnp.sum(jnp.zeros(2, x.dtype)),
    "chosen by what is computed": lambda x: jnp.where(jnp.any(jnp.arange(2) > 0), x, 7),
}
LAYOUT = ("NHWC", "HWIO", "NHWC")
NONE = (0, 0)
# The sizes of an image and of a kernel that are padded, and by how much; the result is of 5x5.
PADS = {
    "image": ((5, 5, 2), (3, 3, 2, 4), (NONE, (1, 1), (2, 0), NONE), (NONE,) * 4),
    "batch": ((5, 5, 2), (3, 3, 2, 4), ((1, 0), (1, 1), (1, 1), NONE), (NONE,) * 4),
    "features": ((5, 5, 1), (3, 3, 2, 4), (NONE, (1, 1), (1, 1), (1, 0)), (NONE,) * 4),
    "kernel": ((7, 7, 2), (1, 2, 2, 4), (NONE,) * 4, ((1, 1), (0, 1), NONE, NONE)),
    "kernel's features": ((7, 7, 2), (3, 3, 1, 3), (NONE,) * 4, (NONE, NONE, (1, 0), (0, 1))),
}


@st.composite
def fused(draw: Draw) -> Case:
    """What TensorFlow's graph optimizer fuses: a product or convolution, a scale, biases, an activation.

    Biases have any shape that broadcasts, also one that makes the result larger. Images and kernels are padded, or not.
    Some numbers are so large that a product is a number only if an operand is scaled before it.
    """
    sizes = Sizes(draw)
    kind = draw(st.sampled_from(["matmul", "batch matmul", "convolution", "depthwise"]))
    batch = sizes.size(1, 3)
    shapes: tuple[tuple[Any, ...], ...]
    if kind.endswith("matmul"):
        outer = (batch,) if kind == "matmul" else (batch, draw(st.integers(1, 2)), 3)
        result = (*outer, 4)
        shapes = (*outer, 5), (5, 4) if kind == "matmul" else (*outer[:2], 5, 4)
    else:
        result = (batch, 5, 5, 4)
        shapes = (batch, 5, 5, 2), (3, 3, 2 if kind == "convolution" else 1, 4)
    pads = draw(st.sampled_from([None, *PADS])) if kind == "convolution" else None
    if pads is not None:
        (*image, features), (*window, inputs, outputs), _, _ = PADS[pads]
        shapes = (batch, *image, features), (*window, inputs, outputs)
    biases = [_bias(draw, result) for _ in range(draw(st.sampled_from([1, 1, 2, 0])))]
    scale = draw(st.sampled_from([None, 0.25, -2.0]))
    dtype = draw(st.one_of(st.just("float32"), st.sampled_from(FLOATS)))
    # XLA for CPU takes a depthwise convolution for one with many zeros in its kernel, which make NaN of infinities.
    values = draw(st.sampled_from(["special", "special", "small"])) if kind != "depthwise" else "small"
    activation = draw(st.sampled_from(OF_SPECIAL if values == "special" else list(ACTIVATIONS)))
    place = draw(st.sampled_from(["before", "after"]))
    neutral = draw(st.sampled_from([None, *NEUTRAL]))
    # Where it is at both places all is left out at once, so that what is around is seen together.
    places = draw(st.sampled_from(["product and sum", "product and sum", "product", "sum"]))
    is_large = dtype == "float32" and draw(st.booleans())

    def function(x: Any, y: Any, *more: Any) -> Any:
        if is_large:
            x, y = (x * 2.0**80) * 2.0**-160, y * 2.0**80
        x = x if scale is None or place == "after" else x * scale
        if kind.endswith("matmul"):
            made = x @ y
        else:
            groups = 1 if kind == "convolution" else 2
            if pads is not None:
                x, y = jnp.pad(x, PADS[pads][2]), jnp.pad(y, PADS[pads][3])
            made = lax.conv_general_dilated(
                x,
                y,
                (1, 1),
                "SAME" if pads is None else "VALID",
                dimension_numbers=LAYOUT,
                feature_group_count=groups,
            )
            made = made[1:] if pads == "batch" else made
        made = made if scale is None or place == "before" else made * scale
        if neutral is not None and "product" in places:
            made = NEUTRAL[neutral](made)
        for bias in more:
            made = made + bias
        if neutral is not None and "sum" in places:
            made = NEUTRAL[neutral](made)
        return ACTIVATIONS[activation](made)

    return Case(
        f"{kind} of {values}{', large' if is_large else ''} numbers, padded: {pads}, scaled {scale} {place}, "
        f"{len(biases)} biases, {neutral} ({places}), {activation}",
        function,
        (Argument(shapes[0], dtype, values), *(Argument(shape, dtype) for shape in (shapes[1], *biases))),
        sizes.symbolic,
        max_error_in_eps=64,
        scale=8.0,
        has_derivative=False,
        often=("graph",),
        tags=frozenset({values, activation}),
    )


def _bias(draw: Draw, result: tuple[Any, ...]) -> tuple[Any, ...]:
    """A shape that broadcasts with another: a row under any number of dimensions of size 1, or any other.

    Of any other some sizes are 1, some dimensions are left out in front, or there is one more. Of four dimensions the
    second is often 1, as in a mask for attention.
    """
    if len(result) == 4 and draw(st.booleans()):
        return result[0], 1, *result[2:]
    if draw(st.booleans()):
        return (*(1,) * draw(st.sampled_from([0, 0, *range(1, len(result) + 2)])), result[-1])
    sizes = [draw(st.sampled_from([size, size, 1])) for size in result]
    kept = sizes[draw(st.integers(0, len(sizes))) :]
    return (draw(st.integers(1, 2)), *kept) if len(kept) == len(sizes) and draw(st.booleans()) else tuple(kept)
