"""Regions of scalars with random bodies, as maps, reductions and scatters have them."""

from __future__ import annotations

from collections.abc import Sequence

from .text import Text, Value

__all__ = ["COMPARISONS", "compared", "computed"]

COMPARISONS = ["LT", "GT", "LE", "GE", "EQ", "NE"]
_PAIRS = ["add", "subtract", "multiply", "maximum", "minimum"]
_STEPS = ["pair", "pair", "pair", "select", "constant", "unary"]


def compared(text: Text, left: Value, right: Value, direction: str, kind: str = "") -> Value:
    """Whether it is so of two values."""
    of_kind = f", compare_type = #stablehlo<comparison_type {kind}>" if kind else ""
    attributes = f"comparison_direction = #stablehlo<comparison_direction {direction}>{of_kind}"
    return text.operation("compare", [left, right], (left.shape, "i1"), attributes)


def computed(text: Text, given: Sequence[Value], steps: Sequence[str] = _STEPS) -> list[Value]:
    """Values of one type, and up to four more that are computed from them."""
    random, pool = text.random, list(given)
    for _ in range(random.randint(1, 4)):
        one, other, third, fourth = (random.choice(pool) for _ in range(4))
        type_, step = (one.shape, one.element), random.choice(steps)
        if step == "constant" and not one.shape:
            made = text.constant(random.randint(0, 3), one.element)
        elif step == "unary":
            signed = ["negate", "abs"] if one.element[0] != "u" else ["not"]
            made = text.operation(random.choice(signed), [one], type_)
        elif step == "select":
            chosen = compared(text, one, other, random.choice(COMPARISONS))
            made = text.operation("select", [chosen, third, fourth], type_)
        elif step == "if":
            condition = compared(text, one, other, random.choice(COMPARISONS))
            branches = [text.region([], lambda value=value: [value]) for value in (third, fourth)]
            made = text.operation("if", [condition], type_, regions=branches)
        elif step == "array":
            parts = [text.operation("reshape", [value], ((1,), one.element)) for value in (one, other)]
            both = text.operation("concatenate", parts, ((2,), one.element), "dimension = 0 : i64")
            start = random.randint(0, 1)
            bounds = f"start_indices = array<i64: {start}>, limit_indices = array<i64: {start + 1}>"
            last = text.operation("slice", [both], ((1,), one.element), f"{bounds}, strides = array<i64: 1>")
            made = text.operation("reshape", [last], type_)
        else:
            made = text.operation(random.choice(_PAIRS), [one, other], type_)
        pool.append(made)
    return pool
