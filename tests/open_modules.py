"""Random StableHLO modules of open sizes, with calls, branches and loops, and what they compute, in NumPy.

The reference computes every operation as StableHLO defines it, and refuses the sizes that it refuses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

__all__ = ["INTEGER", "Body", "Looks", "Misfit", "modules"]

MOST_ELEMENTS = 4096

Type: TypeAlias = tuple[int | None, ...]
"""The sizes of an array of float32; of an integer it is `INTEGER`."""

INTEGER: Type = (-1,)
INT, ONE = "tensor<i32>", "tensor<1xi32>"


class Looks(IntEnum):
    """At what the reference looks: what the results need, what runs, or all, as whoever compiles may."""

    NEEDED = 0
    RUN = 1
    ALL = 2


class Misfit(Exception):
    """Sizes are not as an operation requires."""


Text: TypeAlias = Callable[[Sequence[str], str, str], str]


def line(text: str) -> Text:
    """That of one operation; names of operands take the places of numbers in braces."""
    return lambda operands, result, prefix: f"{result} = {text.format(*operands)}"


def require(holds: bool) -> None:
    """Refuses what does not hold."""
    if not holds:
        raise Misfit


def written(type_: Type, dtype: str = "f32") -> str:
    """A type in a module."""
    return INT if type_ == INTEGER else "tensor<" + "".join("?x" if n is None else f"{n}x" for n in type_) + f"{dtype}>"


def opened(type_: Type) -> Type:
    """The type of as many dimensions without sizes."""
    return (None,) * len(type_)


@dataclass(repr=False)
class Step:
    """One operation, perhaps with others before it.

    Attributes:
      text: From the names of the operands, that of the result, and a prefix for others, to lines.
      operands: Their numbers.
      type: Of the result.
      compute: From the operands to the result.
      looks: Whether what is computed takes what is looked at, first: of a step with blocks.
      needs: The positions of the operands without which it is not computed; all, if there are none.
    """

    text: Text
    operands: Sequence[int]
    type: Type
    compute: Callable[..., Any]
    looks: bool = False
    needs: Sequence[int] = ()


@dataclass(repr=False)
class Body:
    """A block, whose values are numbered, the arguments first.

    Attributes:
      arguments: Their types.
      types: Of all values.
      steps: What computes those that are no arguments.
      returned: The numbers of those that it returns.
    """

    arguments: Sequence[Type]
    types: list[Type] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    returned: Sequence[int] = ()

    def __post_init__(self) -> None:
        self.types = list(self.arguments)

    def add(self, step: Step) -> int:
        """Adds an operation; the number of its result."""
        self.steps.append(step)
        self.types.append(step.type)
        return len(self.types) - 1

    def written(self, given: Sequence[str], prefix: str) -> tuple[str, list[str]]:
        """The lines of the block and the names that it returns."""
        names, lines = list(given), []
        for number, step in enumerate(self.steps):
            name = f"%{prefix}{number}"
            lines.append(step.text([names[i] for i in step.operands], name, f"{name}_"))
            names.append(name)
        return "\n".join(lines), [names[i] for i in self.returned]

    def run(self, given: Sequence[Any], looks: Looks, only: Sequence[int] | None = None) -> list[Any]:
        """What it returns.

        Args:
          given: The arguments; None for one that nothing needs.
          looks: At what.
          only: The numbers of the results that are needed, if not all are; None in the place of the others.

        Raises:
          Misfit: Sizes are not as an operation requires.
        """
        values = dict(enumerate(given))
        wanted = range(len(self.returned)) if only is None or looks else only
        for number in self.needed(wanted, looks) if looks < Looks.ALL else range(len(given), len(self.types)):
            step = self.steps[number - len(given)]
            operands = [values.get(i) for i in step.operands]
            value = values[number] = step.compute(looks, *operands) if step.looks else step.compute(*operands)
            if step.type != INTEGER:
                require(all(known in (None, size) for size, known in zip(value.shape, step.type, strict=True)))
                assume(value.size <= MOST_ELEMENTS)
        return [values[number] if i in wanted else None for i, number in enumerate(self.returned)]

    def needed(self, wanted: Sequence[int], looks: Looks = Looks.NEEDED, *, arguments: bool = False) -> Sequence[int]:
        """The numbers of the values that are computed for some of the results, or of the arguments for them."""
        left, found = [self.returned[i] for i in wanted], set()
        while left:
            number = left.pop()
            if number not in found:
                found.add(number)
                if number >= len(self.arguments):
                    step = self.steps[number - len(self.arguments)]
                    left += [step.operands[i] for i in step.needs] if step.needs and not looks else step.operands
        return sorted(number for number in found if (number < len(self.arguments)) == arguments)


class Drawing:
    """Draws operations into a body.

    Args:
      draw: Draws from a strategy.
      functions: Bodies of functions by name, which may be called.
      depth: How many blocks may be within one another.
      slices_by_values: Whether slices end at any integer, and not at a size alone.
    """

    def __init__(
        self, draw: Callable[..., Any], functions: dict[str, Body], depth: int, slices_by_values: bool
    ) -> None:
        self._draw, self._functions, self._depth, self._slices_by_values = draw, functions, depth, slices_by_values

    def step(self, body: Body) -> None:
        """Adds one operation, and what it needs."""
        self._among([*self._OPERATIONS, *self._BLOCKS] if self._depth else self._OPERATIONS)(self, body)

    # --- what there is ---

    def _among(self, values: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(list(values)))

    def _number(self, least: int, most: int) -> int:
        return self._draw(st.integers(least, most))

    def _array(self, body: Body, rank: int | None = None, least: int = 0) -> int:
        found = [
            i
            for i, type_ in enumerate(body.types)
            if type_ != INTEGER and len(type_) >= least and rank in (None, len(type_))
        ]
        assume(found)
        return self._among(found[-5:])

    def _integer(self, body: Body) -> int:
        there = [i for i, type_ in enumerate(body.types) if type_ == INTEGER]
        kind = self._among(["size"] * 3 + ["constant"] + ["there", "computed"] * bool(there))
        if kind == "there":
            return self._among(there[-4:])
        if kind == "constant":
            n = self._number(0, 3)
            return body.add(Step(line(f"stablehlo.constant dense<{n}> : {INT}"), (), INTEGER, lambda: n))
        if kind == "computed":
            functions = {
                "add": np.add,
                "multiply": np.multiply,
                "maximum": max,
                "minimum": min,
                "subtract": np.subtract,
            }
            name = self._among(functions)
            operands = self._among(there[-4:]), self._among(there[-4:])
            text = line(f"stablehlo.{name} {{0}}, {{1}} : {INT}")
            return body.add(Step(text, operands, INTEGER, lambda a, b: int(functions[name](a, b))))
        return self._size(body)

    def _size(self, body: Body) -> int:
        x = self._array(body, least=1)
        type_ = body.types[x]
        axis = self._number(0, len(type_) - 1)
        text = line(f"stablehlo.get_dimension_size {{0}}, dim = {axis} : ({written(type_)}) -> {INT}")
        return body.add(Step(text, [x], INTEGER, lambda v: v.shape[axis]))

    # --- operations ---

    def _unary(self, body: Body) -> None:
        x = self._array(body)
        add_negate(body, x)

    def _known(self, body: Body) -> None:
        """The type of the result knows a size."""
        x = self._array(body, least=1)
        known = list(body.types[x])
        axis = self._number(0, len(known) - 1)
        known[axis] = known[axis] or self._number(1, 3)
        add_negate(body, x, tuple(known))

    def _binary(self, body: Body) -> None:
        x = self._array(body)
        y = self._array(body, len(body.types[x]))
        name, compute = self._among((("add", np.add), ("maximum", np.maximum), ("subtract", np.subtract)))
        a, b, c = (written(t) for t in (body.types[x], body.types[y], opened(body.types[x])))

        def computed(u: Any, v: Any) -> Any:
            require(u.shape == v.shape)
            return compute(u, v)

        text = line(f"stablehlo.{name} {{0}}, {{1}} : ({a}, {b}) -> {c}")
        body.add(Step(text, [x, y], opened(body.types[x]), computed))

    def _select(self, body: Body) -> None:
        x = self._array(body)
        operands = [x, *(self._array(body, len(body.types[x])) for _ in range(2))]
        a, b, c = (written(body.types[i]) for i in operands)
        result = opened(body.types[x])
        truth = written(result, "i1")

        def computed(u: Any, v: Any, w: Any) -> Any:
            require(u.shape == v.shape == w.shape)
            return np.where(u > v, v, w)

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{p}t = stablehlo.compare GT, {o[0]}, {o[1]} : ({a}, {b}) -> {truth}
                {r} = stablehlo.select {p}t, {o[1]}, {o[2]} : ({truth}, {b}, {c}) -> {written(result)}"""

        body.add(Step(text, operands, result, computed))

    def _both(self, body: Body) -> None:
        """What one of two barriers lets through."""
        x, y = self._array(body), self._array(body)
        a, b = (written(body.types[i]) for i in (x, y))

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{p}b:2 = stablehlo.optimization_barrier {o[0]}, {o[1]} : {a}, {b}
                {r} = stablehlo.negate {p}b#1 : {b}"""

        body.add(Step(text, [x, y], body.types[y], lambda u, v: -v))

    def _transpose(self, body: Body) -> None:
        x = self._array(body, least=1)
        type_ = body.types[x]
        order = self._draw(st.permutations(range(len(type_))))
        result = tuple(type_[i] for i in order)
        text = line(f"stablehlo.transpose {{0}}, dims = {order} : ({written(type_)}) -> {written(result)}")
        body.add(Step(text, [x], result, lambda v: v.transpose(order)))

    def _reduce(self, body: Body) -> None:
        x = self._array(body, least=1)
        type_ = body.types[x]
        axis = self._number(0, len(type_) - 1)
        result = type_[:axis] + type_[axis + 1 :]

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{p}z = stablehlo.constant dense<0.0> : tensor<f32>
                {r} = stablehlo.reduce({o[0]} init: {p}z) applies stablehlo.add across dimensions = [{axis}]
                  : ({written(type_)}, tensor<f32>) -> {written(result)}"""

        body.add(Step(text, [x], result, lambda v: v.sum(axis)))

    def _product(self, body: Body) -> None:
        x, y = self._array(body, 2), self._array(body, 2)
        (a, b), i, j = (body.types[x], body.types[y]), self._number(0, 1), self._number(0, 1)
        result = (a[1 - i], b[1 - j])

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{r} = stablehlo.dot_general {o[0]}, {o[1]}, contracting_dims = [{i}] x [{j}]
                : ({written(a)}, {written(b)}) -> {written(result)}"""

        def computed(u: Any, v: Any) -> Any:
            require(u.shape[i] == v.shape[j])
            return np.tensordot(u, v, ([i], [j]))

        body.add(Step(text, [x, y], result, computed))

    def _batched(self, body: Body) -> None:
        x, y = self._array(body, least=2), self._array(body, least=2)
        a, b = body.types[x], body.types[y]
        result = (None, *a[2:], *b[2:])

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{r} = stablehlo.dot_general {o[0]}, {o[1]}, batching_dims = [0] x [0],
                contracting_dims = [1] x [1] : ({written(a)}, {written(b)}) -> {written(result)}"""

        def computed(u: Any, v: Any) -> Any:
            require(u.shape[:2] == v.shape[:2])
            products = [np.tensordot(m, n, ([0], [0])) for m, n in zip(u, v, strict=True)]
            return np.asarray(products, np.float32).reshape(len(u), *u.shape[2:], *v.shape[2:])

        body.add(Step(text, [x, y], result, computed))

    def _concatenate(self, body: Body) -> None:
        x = self._array(body, least=1)
        rank = len(body.types[x])
        y, axis = self._array(body, rank), self._number(0, rank - 1)
        a, b, c = (written(t) for t in (body.types[x], body.types[y], opened(body.types[x])))

        def computed(u: Any, v: Any) -> Any:
            require(all(m == n for i, (m, n) in enumerate(zip(u.shape, v.shape, strict=True)) if i != axis))
            return np.concatenate([u, v], axis)

        text = line(f"stablehlo.concatenate {{0}}, {{1}}, dim = {axis} : ({a}, {b}) -> {c}")
        body.add(Step(text, [x, y], opened(body.types[x]), computed))

    def _broadcast(self, body: Body) -> None:
        sizes = [self._integer(body) for _ in range(self._number(1, 3))]
        x, rank = self._array(body), len(sizes)
        type_ = body.types[x]
        assume(len(type_) <= rank)
        places = sorted(self._draw(st.permutations(range(rank)))[: len(type_)])

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{vector(o[1:], p)}
                {r} = stablehlo.dynamic_broadcast_in_dim {o[0]}, {p}v, dims = {places}
                  : ({written(type_)}, tensor<{rank}xi32>) -> {written((None,) * rank)}"""

        def computed(v: Any, *shape: int) -> Any:
            check_shape(shape)
            require(all(n in (1, shape[i]) for n, i in zip(v.shape, places, strict=True)))
            placed = [1] * rank
            for n, i in zip(v.shape, places, strict=True):
                placed[i] = n
            return np.broadcast_to(v.reshape(placed), shape)

        body.add(Step(text, [x, *sizes], (None,) * rank, computed))

    def _reshape(self, body: Body) -> None:
        sizes = [self._integer(body) for _ in range(self._number(1, 3))]
        x, rank = self._array(body), len(sizes)
        type_ = body.types[x]

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{vector(o[1:], p)}
                {r} = stablehlo.dynamic_reshape {o[0]}, {p}v
                  : ({written(type_)}, tensor<{rank}xi32>) -> {written((None,) * rank)}"""

        def computed(v: Any, *shape: int) -> Any:
            check_shape(shape)
            require(math.prod(shape) == v.size)
            return v.reshape(shape)

        body.add(Step(text, [x, *sizes], (None,) * rank, computed))

    def _iota(self, body: Body) -> None:
        sizes = [self._integer(body) for _ in range(self._number(1, 2))]
        rank = len(sizes)

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{vector(o, p)}
                {r} = stablehlo.dynamic_iota {p}v, dim = 0 : (tensor<{rank}xi32>) -> {written((None,) * rank)}"""

        def computed(*shape: int) -> Any:
            check_shape(shape)
            return np.indices(shape)[0].astype(np.float32)

        body.add(Step(text, sizes, (None,) * rank, computed))

    def of_sizes(self, body: Body, number: int) -> None:
        """Adds an array of the sizes of this one, of whose elements nothing is computed."""
        type_ = body.types[number]
        types = f"({written(type_)}) -> {INT}"

        def text(o: Sequence[str], r: str, p: str) -> str:
            names = [f"{p}n{axis}" for axis in range(len(type_))]
            sizes = [f"{n} = stablehlo.get_dimension_size {o[0]}, dim = {i} : {types}" for i, n in enumerate(names)]
            made = f"(tensor<{len(names)}xi32>) -> {written(opened(type_))}"
            return "\n".join([*sizes, vector(names, p), f"{r} = stablehlo.dynamic_iota {p}v, dim = 0 : {made}"])

        body.add(Step(text, [number], opened(type_), lambda v: np.indices(v.shape)[0].astype(np.float32)))

    def _slice(self, body: Body) -> None:
        """Elements of a vector, up to an integer."""
        limit = self._integer(body) if self._slices_by_values else self._size(body)
        x, start = self._array(body, 1), self._number(0, 1)
        type_ = body.types[x]

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{p}s = stablehlo.constant dense<{start}> : {ONE}
                {p}l = stablehlo.reshape {o[1]} : ({INT}) -> {ONE}
                {p}t = stablehlo.constant dense<1> : {ONE}
                {r} = stablehlo.real_dynamic_slice {o[0]}, {p}s, {p}l, {p}t
                  : ({written(type_)}, {ONE}, {ONE}, {ONE}) -> tensor<?xf32>"""

        def computed(v: Any, n: int) -> Any:
            require(start <= n <= len(v))
            return v[start:n]

        body.add(Step(text, [x, limit], (None,), computed))

    def _pad(self, body: Body) -> None:
        x = self._array(body, least=1)
        type_ = body.types[x]
        low, high = ([self._among((0, 0, 1)) for _ in type_] for _ in range(2))
        result = tuple(None if n is None else n + p + q for n, p, q in zip(type_, low, high, strict=True))

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{p}z = stablehlo.constant dense<0.0> : tensor<f32>
                {r} = stablehlo.pad {o[0]}, {p}z, low = {low}, high = {high}, interior = {[0] * len(low)}
                  : ({written(type_)}, tensor<f32>) -> {written(result)}"""

        body.add(Step(text, [x], result, lambda v: np.pad(v, list(zip(low, high, strict=True)))))

    def _rows(self, body: Body) -> None:
        """The first element of rows whose numbers are in a vector."""
        x, y = self._array(body, 2), self._array(body, 1)
        a, b = body.types[x], body.types[y]
        indices, result = written(b, "i32"), (b[0], 1)

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{p}i = stablehlo.convert {o[1]} : ({written(b)}) -> {indices}
                {r} = "stablehlo.gather"({o[0]}, {p}i) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1],
                  collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
                  slice_sizes = array<i64: 1, 1>}}> : ({written(a)}, {indices}) -> {written(result)}"""

        def computed(u: Any, v: Any) -> Any:
            require(u.shape[0] >= 1 and u.shape[1] >= 1)
            return u[np.clip(v.astype(np.int32), 0, len(u) - 1)][:, :1]

        body.add(Step(text, [x, y], result, computed))

    # --- blocks ---

    def _block(self, arguments: Sequence[Type], count: int, ranks: Sequence[int]) -> Body:
        """A block that returns arrays of these ranks."""
        body, inner = Body(arguments), Drawing(self._draw, self._functions, self._depth - 1, self._slices_by_values)
        for _ in range(count):
            inner.step(body)
        body.returned = [inner._array(body, rank) for rank in ranks]
        return body

    def _call(self, body: Body) -> None:
        name = self._among([*self._functions, None])
        if name is None:
            ranks = [len(body.types[self._array(body)]) for _ in range(2)]
            made = self._block([*((None,) * rank for rank in ranks), INTEGER], self._number(1, 4), ranks)
            for i, number in enumerate(made.returned):
                made.returned[i] = add_negate(made, number, opened(made.types[number]))  # type: ignore[index]
            name = f"f{len(self._functions)}"
            self._functions[name] = made
        function = self._functions[name]
        operands = [self._integer(body) if t == INTEGER else self._array(body, len(t)) for t in function.arguments]
        operands = [x if body.types[x] == INTEGER else add_negate(body, x, opened(body.types[x])) for x in operands]
        types = [function.types[i] for i in function.returned]
        which = self._number(0, 1)
        given, results = (", ".join(map(written, of)) for of in (function.arguments, types))

        def text(o: Sequence[str], r: str, p: str) -> str:
            return f"""{p}r:2 = func.call @{name}({", ".join(o)}) : ({given}) -> ({results})
                {p}b:2 = stablehlo.optimization_barrier {p}r#0, {p}r#1 : {results}
                {r} = stablehlo.negate {p}b#{which} : {written(types[which])}"""

        def computed(looks: Looks, *values: Any) -> Any:
            return -function.run(values, looks, [which])[which]

        needs = function.needed([which], arguments=True)
        body.add(Step(text, operands, types[which], computed, looks=True, needs=needs))

    def _branch(self, body: Body) -> None:
        x, y, size = self._array(body), self._array(body), self._integer(body)
        result, limit = opened(body.types[x]), self._number(0, 3)
        arguments = [body.types[x], body.types[y], INTEGER]
        yes, no = ways = [self._block(arguments, count, [len(result)]) for count in (2, 1)]
        for way in ways:
            way.returned = [add_negate(way, way.returned[0], result)]

        def text(o: Sequence[str], r: str, p: str) -> str:
            regions = []
            for number, way in enumerate(ways):
                lines, (last,) = way.written(o, f"{p[1:]}w{number}_")
                regions.append(f"{{\n{lines}\nstablehlo.return {last} : {written(result)}\n}}")
            return f"""{p}l = stablehlo.constant dense<{limit}> : {INT}
                {p}p = stablehlo.compare GT, {o[2]}, {p}l : ({INT}, {INT}) -> tensor<i1>
                {r} = "stablehlo.if"({p}p) ({", ".join(regions)}) : (tensor<i1>) -> {written(result)}"""

        def computed(looks: Looks, *values: Any) -> Any:
            taken, other = (yes, no) if values[2] > limit else (no, yes)
            if looks == Looks.ALL:
                other.run(values, looks)
            return taken.run(values, looks)[0]

        needs = sorted({2, *(i for way in ways for i in way.needed([0], arguments=True))})
        body.add(Step(text, [x, y, size], result, computed, looks=True, needs=needs))

    def _loop(self, body: Body) -> None:
        """Two arrays are carried, often of one shape at first; one from outside is used beside them."""
        first = self._array(body)
        operands = [add_negate(body, i, None) for i in (first, self._among((first, self._array(body))))]
        operands.append(self._array(body))
        turns, which = self._among((0, 1, 2, 2, 3)), self._number(0, 1)
        carried = [body.types[i] for i in operands[:2]]
        made = self._block([*carried, body.types[operands[2]]], self._number(1, 4), [len(t) for t in carried])
        made.returned = [add_negate(made, i, t) for i, t in zip(made.returned, carried, strict=True)]
        a, b = map(written, carried)

        def text(o: Sequence[str], r: str, p: str) -> str:
            lines, back = made.written([f"{p}x", f"{p}y", o[2]], f"{p[1:]}w_")
            return f"""{p}k = stablehlo.constant dense<{turns}> : {INT}
                {p}i = stablehlo.constant dense<0> : {INT}
                {p}r:3 = stablehlo.while({p}j = {p}i, {p}x = {o[0]}, {p}y = {o[1]}) : {INT}, {a}, {b}
                cond {{
                  {p}p = stablehlo.compare LT, {p}j, {p}k : ({INT}, {INT}) -> tensor<i1>
                  stablehlo.return {p}p : tensor<i1>
                }} do {{
                  {p}m = stablehlo.constant dense<1> : {INT}
                  {p}q = stablehlo.add {p}j, {p}m : {INT}
                  {lines}
                  stablehlo.return {p}q, {", ".join(back)} : {INT}, {a}, {b}
                }}
                {r} = stablehlo.negate {p}r#{1 + which} : {(a, b)[which]}"""

        needed = [which]
        while (more := sorted({*needed, *(i for i in made.needed(needed, arguments=True) if i < 2)})) != needed:
            needed = more
        needs = sorted({*needed, *made.needed(needed, arguments=True)})

        def computed(looks: Looks, *values: Any) -> Any:
            *state, last = values
            for _ in range(turns):
                state = made.run([*state, last], looks, needed)
            if looks == Looks.ALL:
                made.run([*state, last], looks)
            return -state[which]

        body.add(Step(text, operands, carried[which], computed, looks=True, needs=needs))

    _OPERATIONS = (
        *(_unary, _known, _binary, _binary, _binary, _select, _transpose, _reduce, _product, _batched, _concatenate),
        *(_broadcast, _broadcast, _reshape, _iota, _slice, _pad, _rows, _both),
    )
    _BLOCKS = (_call, _call, _branch, _loop, _loop)


def add_negate(body: Body, number: int, result: Type | None = None) -> int:
    """Adds a negation whose result has that type, or one without sizes."""
    before = body.types[number]
    after = opened(before) if result is None else result
    text = line(f"stablehlo.negate {{0}} : ({written(before)}) -> {written(after)}")
    return body.add(Step(text, [number], after, lambda v: -v))


def vector(integers: Sequence[str], prefix: str) -> str:
    """Lines that make a vector `v` of integers."""
    parts = [f"{prefix}v{i} = stablehlo.reshape {name} : ({INT}) -> {ONE}" for i, name in enumerate(integers)]
    names, types = (", ".join(of) for of in ([f"{prefix}v{i}" for i in range(len(parts))], [ONE] * len(parts)))
    last = f"{prefix}v = stablehlo.concatenate {names}, dim = 0 : ({types}) -> tensor<{len(parts)}xi32>"
    return "\n".join([*parts, last])


def check_shape(shape: Sequence[int]) -> None:
    """Refuses negative sizes; those of many elements are not tried."""
    require(min(shape, default=0) >= 0)
    assume(math.prod(shape) <= MOST_ELEMENTS)


@st.composite
def modules(draw: Callable[..., Any], slices_by_values: bool) -> tuple[str, Body]:
    """A module's text, and its main function: of arrays of any sizes, and of one integer."""
    functions: dict[str, Body] = {}
    drawing = Drawing(draw, functions, 2, slices_by_values)
    ranks = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    main = Body([*((None,) * rank for rank in ranks), INTEGER])
    is_of_sizes = draw(st.sampled_from((False, False, True)))  # most is computed from sizes alone, before anything runs
    for number in range(len(ranks) * is_of_sizes):
        drawing.of_sizes(main, number)
    for _ in range(draw(st.integers(1, 3) if is_of_sizes else st.integers(2, 8))):
        drawing.step(main)
    main.returned = [i for i, type_ in enumerate(main.types) if type_ != INTEGER and i >= len(main.arguments)]
    assume(main.returned)
    if is_of_sizes or draw(st.booleans()):
        main.returned = draw(st.lists(st.sampled_from(main.returned[-3:]), min_size=1, max_size=2, unique=True))
    texts = [function("main", main, "public"), *(function(name, body, "private") for name, body in functions.items())]
    return "\n".join(texts), main


def function(name: str, body: Body, visibility: str) -> str:
    """A function of a module."""
    given = [f"%a{i}" for i in range(len(body.arguments))]
    lines, returned = body.written(given, "b")
    arguments = ", ".join(f"{n}: {written(t)}" for n, t in zip(given, body.arguments, strict=True))
    types = ", ".join(written(body.types[i]) for i in body.returned)
    return f"""func.func {visibility} @{name}({arguments}) -> ({types}) {{
        {lines}
        return {", ".join(returned)} : {types}
      }}"""
