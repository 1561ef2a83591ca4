"""Sizes of jax.export's dimensions, evaluated from their texts, are what Python computes, in 32 bits on the way."""

import random

import pytest

from jaxtf.calltf._scope import evaluated_text

MOST = 2**31 - 1


class Of32Bits(int):
    """An integer that may not leave 32 bits, whatever is done with it."""

    def __new__(cls, value):
        assert abs(value) <= MOST, value
        return super().__new__(cls, value)

    def __add__(self, other):
        return Of32Bits(int(self) + other)

    def __sub__(self, other):
        return Of32Bits(int(self) - other)

    def __mul__(self, other):
        return Of32Bits(int(self) * other)

    def __neg__(self):
        return Of32Bits(-int(self))

    def __floordiv__(self, other):
        return Of32Bits(int(self) // other)

    def __mod__(self, other):
        return Of32Bits(int(self) % other)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other):
        return Of32Bits(other - int(self))


@pytest.mark.parametrize("function", ["floordiv", "mod"])
@pytest.mark.parametrize("size", [1, 32767, 32768, 70_000, 2**31 - 40_000])
def test_a_negated_size_over_a_large_number_stays_within_32_bits(function, size):
    value = evaluated_text(f"{function}(32767*b + 5, 32768)", {"b": Of32Bits(size)})
    dividend = 32767 * size + 5
    assert value == (dividend // 32768 if function == "floordiv" else dividend % 32768)


def _text(draw, depth):
    """The text of a size, as jax.export writes them."""
    if depth == 0:
        return draw.choice(["b", "c", "b^2", "b*c", "7"])
    terms = [draw.choice(["", "3*", "-2*", "99*"]) + _factor(draw, depth - 1) for _ in range(draw.randint(1, 3))]
    return " + ".join(terms).replace("+ -", "- ") + draw.choice(["", " + 4", " - 9"])


def _factor(draw, depth):
    match draw.choice(["variable", "floordiv", "mod", "max", "min"]):
        case "variable":
            return draw.choice(["b", "c", "b*c"])
        case "floordiv" | "mod" as function:
            return f"{function}({_text(draw, depth)}, {draw.choice([1, 2, 3, 100, 'b'])})"
        case function:
            return f"{function}({_text(draw, depth)}, {_text(draw, depth)})"


@pytest.mark.parametrize("seed", range(10))
def test_texts_drawn_at_random_have_the_value_that_python_gives(seed):
    draw = random.Random(seed)
    for _ in range(100):
        text = _text(draw, 2)
        sizes = {"b": draw.randint(1, 60), "c": draw.randint(1, 60)}
        functions = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}
        assert evaluated_text(text, sizes) == eval(text.replace("^", "**"), functions, sizes), text
