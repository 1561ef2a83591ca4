"""Operations on floating-point numbers, special ones among them, and random bits."""

from __future__ import annotations

from .scalars import COMPARISONS, compared
from .text import COMPLEX, FLOATS, INTEGERS, Module, Text

__all__ = ["chlo", "complexes", "floats", "random_bits"]

_EXACT = ["abs", "ceil", "floor", "negate", "sign", "round_nearest_afz", "round_nearest_even", "real", "imag"]
_NEAR = ["cbrt", "sqrt", "rsqrt", "exponential", "log", "logistic", "tanh", "log_plus_one", "exponential_minus_one"]
_TURNS = ["sine", "cosine", "tan"]
_BITS = {"f32": (8, 23), "f64": (11, 52), "f16": (5, 10), "bf16": (8, 7)}
_CHLO = [
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bessel_i1e",
    "cosh",
    "digamma",
    "erf",
    "erf_inv",
    "erfc",
    "lgamma",
    "sinh",
    "square",
    "tan",
    "acos",
]
_CLASSES = ["is_inf", "is_pos_inf", "is_neg_inf"]


def floats(text: Text) -> Module:
    """Of one type: rounding, powers, comparisons, and fewer bits."""
    random, element, type_ = text.random, text.random.choice(FLOATS), (29,)
    x = text.argument(type_, element, random.choice(("special", "normal")))
    y = text.argument(type_, element)
    found = [text.operation(name, [x], (type_, element)) for name in random.sample([*_EXACT, *_NEAR, *_TURNS], 4)]
    found.append(text.operation("is_finite", [x], (type_, "i1")))
    exponent, mantissa = random.randint(1, _BITS[element][0] + 1), random.randint(0, _BITS[element][1] + 1)
    attributes = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
    found.append(text.operation("reduce_precision", [x], (type_, element), attributes))
    found.append(compared(text, x, y, random.choice(COMPARISONS), random.choice(("FLOAT", "TOTALORDER"))))
    found.append(text.operation("remainder", [x, y], (type_, element)))
    return text.module(*found, max_error_in_eps=32)


def chlo(text: Text) -> Module:
    """Functions of CHLO of real numbers."""
    random, element, type_ = text.random, text.random.choice(["f32", "f64"]), (17,)
    x = text.argument(type_, element, random.choice(("special", "normal")))
    found = [text.operation(f"chlo.{name}", [x], (type_, element)) for name in random.sample(_CHLO, 3)]
    found += [text.operation(f"chlo.{name}", [x], (type_, "i1")) for name in _CLASSES]
    like = f"value = {random.choice(('1.5', '-2.5', '0.1', '65504.0'))} : {element}"
    return text.module(*found, text.operation("chlo.constant_like", [x], (type_, element), like), max_error_in_eps=64)


def complexes(text: Text) -> Module:
    """Of complex numbers that are not special."""
    random, element, type_ = text.random, text.random.choice(COMPLEX), (17,)
    x, y = text.argument(type_, element, "normal"), text.argument(type_, element, "normal")
    names = ["negate", "sign", "sqrt", "rsqrt", "exponential", "log", "logistic", "tanh", "log_plus_one"]
    names += ["exponential_minus_one", "sine", "cosine", "tan", *(f"chlo.{one}" for one in ("conj", "square", "asinh"))]
    found = [text.operation(name, [x], (type_, element)) for name in random.sample(names, 3)]
    found += [
        text.operation(name, [x, y], (type_, element)) for name in random.sample(["multiply", "divide", "power"], 2)
    ]
    real = element[8:-1]
    found += [text.operation(name, [x], (type_, real)) for name in ("abs", "real", "imag")]
    found += [compared(text, x, y, direction) for direction in ("EQ", "NE")]
    return text.module(*found, max_error_in_eps=64)


def random_bits(text: Text) -> Module:
    """By each algorithm, as integers of any width with or without a sign, which XLA is asked for without."""
    random, algorithm = text.random, text.random.choice(["DEFAULT", "THREE_FRY", "PHILOX"])
    count = 2 if algorithm == "THREE_FRY" else random.choice((2, 3))
    element, shape = random.choice(INTEGERS), text.shape(0, 3, 5)
    state = text.argument((count,), "ui64")
    attributes = f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>"
    results = ((count,), "ui64"), (shape, element.replace("ui", "i").replace("i", "ui"))
    last, bits = text.operation("rng_bit_generator", [state], *results, attributes)
    return text.module(last, text.operation("bitcast_convert", [bits], (shape, element)))
