"""Elements by themselves: with broadcasts of CHLO, maps, integers, conversions, bits, and batch normalization."""

from __future__ import annotations

from typing import Any

from .scalars import COMPARISONS, computed
from .text import COMPLEX, FLOATS, INTEGERS, NARROW, Module, Text, list_of

__all__ = ["batch_norm", "bits", "broadcast", "conversions", "integers", "mapped"]

_WITHOUT_NAN = "small"  # XLA and TensorFlow differ in maxima of NaN (docs/convert.md)
_BITWISE = ["and", "or", "xor"]
_SHIFTS = ["shift_left", "shift_right_arithmetic", "shift_right_logical"]
_ARITHMETIC = ["add", "subtract", "multiply"]
_EXTREMES = ["maximum", "minimum"]

# Operations of `chlo.broadcast_*`: element types, numbers, error in eps.
_BROADCASTS: dict[str, tuple[list[str], str, float]] = {
    **dict.fromkeys(_ARITHMETIC, (FLOATS + INTEGERS + COMPLEX, "small", 0)),
    **dict.fromkeys(["divide", "remainder"], (FLOATS + INTEGERS, "special", 1)),
    **dict.fromkeys(_EXTREMES, ([*FLOATS, *INTEGERS, "i1"], _WITHOUT_NAN, 0)),
    **dict.fromkeys(_BITWISE, ([*INTEGERS, "i1"], "special", 0)),
    **dict.fromkeys(_SHIFTS, (INTEGERS, "special", 0)),
    "atan2": (["f32", "f64"], "special", 8),
    "complex": (["f32", "f64"], "special", 0),
    "next_after": (["f32", "f64"], "special", 0),
    "compare": ([*FLOATS, *INTEGERS, *COMPLEX, "i1"], "special", 0),
    "select": ([*FLOATS, *INTEGERS, *COMPLEX], "special", 0),
}


def broadcast(text: Text) -> Module:
    """An operation of CHLO on arrays of different shapes, the smaller one along stated dimensions."""
    random, name = text.random, text.random.choice(list(_BROADCASTS))
    elements, values, error = _BROADCASTS[name]
    element = random.choice(elements)
    whole = tuple(random.randint(1, 4) for _ in range(random.randint(1, 3)))
    count = 3 if name == "select" else 2
    stated = sorted(random.sample(range(len(whole)), random.randint(0, len(whole))))
    if name == "select" or random.random() < 0.4:
        stated = list(range(len(whole) - len(stated), len(whole)))
    smaller = random.randrange(count)
    places = [stated if i == smaller else list(range(len(whole))) for i in range(count)]
    types = ["i1" if name == "select" and i == 0 else element for i in range(count)]
    operands = [
        text.argument([random.choice((whole[axis], whole[axis], 1)) for axis in axes], type_, values)
        for axes, type_ in zip(places, types, strict=True)
    ]
    result = [1] * len(whole)
    for axes, operand in zip(places, operands, strict=True):
        for axis, size in zip(axes, operand.shape, strict=True):
            result[axis] = max(result[axis], size)
    made = {"compare": "i1", "complex": f"complex<{element}>"}.get(name, element)
    wide = [
        text.asks("broadcast_in_dim", [x], (result, x.element), f"broadcast_dimensions = {list_of(axes)}")
        for axes, x in zip(places, operands, strict=True)
    ]
    direction = random.choice(COMPARISONS[4:] if element in COMPLEX else COMPARISONS)
    ours, theirs = [
        f"comparison_direction = #{dialect}<comparison_direction {direction}>" if name == "compare" else ""
        for dialect in ("chlo", "stablehlo")
    ]
    if name != "select" and len(stated) < len(whole):
        ours += f"{', ' if ours else ''}broadcast_dimensions = {list_of(stated)}"
    other = "chlo.next_after" if name == "next_after" else name
    found = text.operation(f"chlo.broadcast_{name}", operands, (result, made), ours, asked=(other, wide, theirs))
    return text.module(found, max_error_in_eps=error)


def mapped(text: Text) -> Module:
    """A function of scalars of several arrays, also with choices by value and with arrays of scalars."""
    random, element, shape = text.random, text.random.choice(["f32", "i32", "f64", "i8", "ui8", "bf16"]), text.shape()
    steps = ["pair", "pair", "select", "constant", "unary", *random.choice(([], ["if"], ["array"]))]
    result = random.choice((element, element, "i64"))

    def function(*taken: Any) -> list[Any]:
        last = random.choice(computed(text, taken, steps))
        return [last if result == element else text.operation("convert", [last], ((), result))]

    operands = [text.argument(shape, element, "small") for _ in range(random.randint(1, 3))]
    region = text.region([((), element)] * len(operands), function)
    attributes = f"dimensions = {list_of(range(len(shape)))}"
    return text.module(text.operation("map", operands, (shape, result), attributes, regions=[region]))


def integers(text: Text) -> Module:
    """Operations on integers of one width, the least and the greatest among them; exponents up to 7."""
    element = text.random.choice([*INTEGERS, *NARROW])
    of_signed = ["negate", "abs", "sign"] if element[0] != "u" else []
    unary = ["popcnt", "count_leading_zeros", "not", *of_signed]
    pairs = [*_ARITHMETIC, "divide", "remainder", "power", *_EXTREMES, *_BITWISE, *_SHIFTS]
    type_ = ((23,), element)
    x, y = text.argument(*type_), text.argument(*type_)
    if element in NARROW:  # XLA for CPU leaves more than four bits: it is asked in eight
        names = text.random.sample([*_ARITHMETIC, *_EXTREMES, *_BITWISE], 4)
        wide = (type_[0], element.replace("4", "8"))
        by_wide = [text.asks("convert", [one], wide) for one in (x, y)]
        asked = [("convert", [text.asks(name, by_wide, wide)], "") for name in names]
        each = zip(names, asked, strict=True)
        results = [text.operation(name, [x, y], type_, asked=other) for name, other in each]
        return text.module(*results, is_lifted=False)
    results = []
    for name in text.random.sample([*unary, *pairs], 5):
        # XLA takes powers of integers with more bits of the exponent wrong.
        other = text.operation("and", [y, text.constant([7] * 23, element)], type_) if name == "power" else y
        results.append(text.operation(name, [x] if name in unary else [x, other], type_))
    low, high = (text.argument((), element) for _ in range(2))
    return text.module(*results, text.operation("clamp", [low, x, high], type_))


def conversions(text: Text) -> Module:
    """From one element type to others, of numbers that these do not have too."""
    types = [*FLOATS, *INTEGERS, *NARROW, *COMPLEX, "i1", "f8E4M3FN", "f8E5M2"]
    element = text.random.choice(types)
    edges = (
        1e3,
        127.5,
        -128.9,
        255.5,
        65535.6,
        2.0**31,
        -(2.0**31),
        2.0**63,
        1e30,
        -1e30,
        0.9999,
        -0.5,
        -0.0,
        448,
        480,
    )
    x = text.argument((19,), element, text.random.choice(("special", edges)) if element in FLOATS else "special")
    return text.module(*(text.operation("convert", [x], (x.shape, other)) for other in text.random.sample(types, 4)))


def bits(text: Text) -> Module:
    """The bits of one type as those of another; of 8-bit floats as such only: XLA ends the process for other widths."""
    widths = {one: int(one.lstrip("uifb")) for one in [*INTEGERS, *NARROW, *FLOATS]} | {"f8E4M3FN": 8, "f8E5M2": 8}
    one = text.random.choice(list(widths))
    fits = [name for name in widths if not (name + one).count("f8") or widths[name] == widths[one]]
    other, shape = text.random.choice(fits), text.shape(0, 2)
    ratio = widths[one] / widths[other]
    taken = shape if ratio >= 1 else (*shape, int(1 / ratio))
    result = (*shape, int(ratio)) if ratio > 1 else shape
    return text.module(text.operation("bitcast_convert", [text.argument(taken, one)], (result, other)))


def batch_norm(text: Text) -> Module:
    """In inference, in training and its derivative, of small integers: other variances may round to anything."""
    random, element = text.random, text.random.choice(["f32", "f64"])
    shape = tuple(random.randint(2, 4) for _ in range(random.randint(2, 4)))
    axis = random.randrange(len(shape))
    vector = shape[axis : axis + 1]
    x, scale, offset, mean = (text.argument(one, element, "small") for one in (shape, vector, vector, vector))
    variance = text.argument(vector, element, (1, 5))
    attributes = f"epsilon = {random.choice(['1.0e-03', '1.0'])} : f32, feature_index = {axis} : i64"
    whole, each = (shape, element), (vector, element)
    kind = random.choice(["inference", "training", "grad"])
    if kind == "inference":
        found = [text.operation("batch_norm_inference", [x, scale, offset, mean, variance], whole, attributes)]
    elif kind == "training":
        found = text.operation("batch_norm_training", [x, scale, offset], whole, each, each, attributes)
    else:
        slope = text.argument(shape, element, "small")
        found = text.operation("batch_norm_grad", [x, scale, mean, variance, slope], whole, each, each, attributes)
    return text.module(*found, max_error_in_eps=200)
