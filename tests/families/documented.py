"""What is known to differ from JAX, or to be refused, and why: the rows that docs/graph_limitations.md lists."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

from .case import Case
from .trial import Trial, compare

__all__ = ["DOCUMENTED", "Documented", "is_documented"]


@dataclass(frozen=True)
class Documented:
    """A difference or a refusal that is known.

    Attributes:
      family: Of which family.
      error: A pattern in the text of the error, with the name of its class in front.
      reason: For the page on limitations.
      tags: All of these the case has.
      backends: A pattern of the whole name of the backend.
      derivative: A pattern of the whole name of the derivative.
      by_specification: Whether it agrees with the specification of the case, which is then looked at.
      simplified: Whether it agrees with what JAX computes for the simplified function of the case, which is then
        looked at.
      without_jit: Whether it agrees with what JAX computes one operation at a time, which is then looked at.
      with_xla: Whether there is no difference with `enable_xla=True`, which is then looked at.
      of_constants: Whether there is no difference where no argument is a constant, which is then looked at.
      drops_nan: Whether it is that XLA drops NaN unless its flag says otherwise; where it does, nothing is excused.
    """

    family: str
    error: str
    reason: str
    tags: frozenset[str] = frozenset()
    backends: str = ".*"
    derivative: str = ".*"
    without_jit: bool = False
    by_specification: bool = False
    simplified: bool = False
    with_xla: bool = False
    of_constants: bool = False
    drops_nan: bool = False


# The sweep sets the flag of docs/convert.md.
KEEPS_NAN = "xla_cpu_enable_fast_min_max=false" in os.environ.get("XLA_FLAGS", "")

# XLA's CPU backend as TensorFlow has it: native mode, and graph mode with jit_compile=True.
COMPILED = r"compiled(\+xla)?|native"

DOCUMENTED: tuple[Documented, ...] = (
    Documented(
        "control_flow",
        "Tried to stack elements of an empty list",
        "`tf.vectorized_map` fails at such a branch where no element takes it",
        tags=frozenset({"a loop in a branch, of open sizes"}),
        backends="vectorized",
    ),
    Documented(
        "sums",
        r"AssertionError: (convolution|dot|batched dot) .* of bfloat16",
        "products of constants are computed when TensorFlow optimizes a graph, without oneDNN: sums of bfloat16 are "
        "rounded more than once",
        backends=r"graph(\+xla)?|vectorized",
        derivative="vjp",  # the cotangent is a constant
        of_constants=True,
    ),
    Documented(
        "dot_general",
        r"InternalError: RET_CHECK failure .* primitive_util::IsComplexType",
        "XLA of TensorFlow 2.19 and 2.20 does not compile a product of complex numbers with a real result",
        tags=frozenset({"real product of complex"}),
        backends="native",
    ),
    Documented(
        "convolution",
        "the batch is empty, of which TensorFlow has no convolution",
        "a convolution of no batch in a module of another producer, with open sizes, is refused when it runs",
        tags=frozenset({"cut"}),
        backends="(eager|graph|compiled).*",
    ),
    Documented(
        "scatter",
        "AssertionError: scatter_",
        "XLA for CPU leaves out updates by indices of 8 bits where a size is more than they can hold",
        tags=frozenset({"narrow indices"}),
        backends="(eager|graph|compiled).*",
    ),
    Documented(
        "reduce",
        "AssertionError: reduce",
        "XLA leaves out the initial value of a reduction of one element, the specification does not",
        tags=frozenset({"one element"}),
        backends="(eager|graph|compiled|lift).*",
    ),
    Documented(
        "reduce",
        "AssertionError: reduce",
        "of more than 32 elements XLA for CPU takes an initial value that is not neutral several times",
        tags=frozenset({"many elements"}),
        backends="(eager|graph|compiled|lift).*",
        by_specification=True,
    ),
    Documented(
        "reduce",
        "AssertionError: reduce by from the next",
        "the specification leaves open in which order a reducer that is not associative combines elements; of more "
        "than 32 it is another than that of XLA for CPU",
        tags=frozenset({"many elements", "from the next"}),
        backends="(eager|graph|compiled|lift).*",
    ),
    *(
        Documented(
            "floats|composed|chained|fused|reduce|reduce_window|pool|cumulative",
            "nan",
            "compiled, XLA's CPU backend drops NaN in minimum and maximum",
            tags=frozenset({"special", kind}),
            backends=COMPILED,
            drops_nan=True,
        )
        for kind in (
            *("max", "min", "cummax", "cummin"),
            *("clamp", "relu", "relu6", "larger"),
        )
    ),
    *(
        Documented(
            "scatter|composed|chained",
            "nan",
            "compiled, XLA's CPU backend drops NaN in minimum and maximum",
            tags=frozenset({"special", kind}),
            backends="native",
            drops_nan=True,
        )
        for kind in ("scatter_max", "scatter_min")
    ),
    *(
        Documented(
            "composed",
            "AssertionError: composed",
            f"XLA replaces {written}; TensorFlow computes all of it, as JAX does without jit",
            tags=frozenset({*steps, "special"}),
            backends="(eager|graph).*",
            without_jit=True,
        )
        for *steps, written in (
            ("log exp", "log(exp(x)) by x, also where exp overflows or gives 0"),
            ("a ** 0.5", "log", "log(x ** c) by c * log(abs(x))"),
            ("exp log", "log(x ** c) by c * log(abs(x)), and for CPU may take exp(log(inf)) for a finite number"),
        )
    ),
    Documented(
        "composed",
        "AssertionError: composed",
        "XLA of TensorFlow replaces log(exp(x)) by x, also where exp overflows or gives 0, or x is -0; that of JAX "
        "0.12 computes it",
        tags=frozenset({"log exp", "special"}),
        backends=COMPILED,
        simplified=True,
    ),
    Documented(
        "convolution",
        r", not [\s\S]*nan",
        "XLA for CPU computes groups of float64 as one, with zeros in its kernel: NaN where another group is infinite",
        tags=frozenset({"special", "groups of float64"}),
        backends="(eager|graph).*",
    ),
    Documented(
        "convolution",
        "nan",
        "XLA for CPU computes groups of float64 as one, with zeros in its kernel: NaN where another group is infinite; "
        "JAX has it of feature groups, compiled graph mode of batch groups too",
        tags=frozenset({"special", "groups of float64"}),
        backends="compiled.*",
    ),
    Documented(
        "complexes",
        "nan",
        "XLA multiplies by the reciprocal of a constant, NaN for 0; TensorFlow divides, as JAX does without jit",
        tags=frozenset({"over 0"}),
        backends="(eager|graph|compiled).*",
        without_jit=True,
    ),
    Documented(
        "composed",
        "AssertionError: composed",
        "of 0 and -0 TensorFlow gives either as their maximum or minimum",
        tags=frozenset({"max", "1 / a"}),
        backends="(eager|graph).*",
    ),
    Documented(
        "pool",
        "nan|inf",
        "with enable_xla=False, TensorFlow's MaxPool drops NaN and treats -inf as the least finite number",
        tags=frozenset({"special", "max"}),
        backends="eager|graph",
        with_xla=True,
    ),
    Documented(
        "pool|reduce_window",
        "nan|inf",
        "of about a thousand windows that do not overlap XLA for CPU drops NaN in minimum and maximum",
        tags=frozenset({"special", "window", "large"}),
        backends="(eager|graph|compiled|native).*",
        by_specification=True,
    ),
    *(
        Documented(
            family,
            "nan",
            "of thousands of elements XLA for CPU drops NaN in minimum and maximum",
            tags=frozenset({"special", kind, count}),
            backends="(eager|graph|compiled|native).*",
        )
        for family, kind, count in (
            ("composed", "max", "a thousand"),
            ("reduce", "max", "a thousand"),
            ("reduce", "min", "a thousand"),
        )
    ),
    Documented(
        "reduce_window",
        "AssertionError: reduce_window by",
        "of windows of more than 32 elements XLA for CPU takes an initial value that is not neutral several times",
        tags=frozenset({"window", "large"}),
        backends="(eager|graph|compiled|lift).*",
        by_specification=True,
    ),
    *(
        Documented(
            family,
            "nan",
            "with enable_xla=False, TensorFlow's softmax of a row with NaN or infinity is NaN there and 0 elsewhere",
            tags=frozenset({"special", step}),
            backends="eager|graph",
            with_xla=True,
        )
        for family, step in (("composed", "log softmax"), ("floats", "softmax"))
    ),
    Documented(
        "pool",
        "AssertionError: (max|min) pool",
        "XLA for CPU combines the elements of padded windows in another order; at ties the tangent is that of another "
        "element",
        tags=frozenset({"padded"}),
        backends="(eager|graph|compiled).*",
        derivative="jvp",
    ),
    Documented(
        "reduce_window",
        "AssertionError: reduce_window by from the next",
        "XLA for CPU combines the elements of padded windows of several dimensions column by column, the specification "
        "row by row: a reducer that does not commute gives another result",
        tags=frozenset({"window", "from the next", "padded"}),
        backends="(eager|graph|compiled|lift).*",
        by_specification=True,
    ),
    Documented(
        "reduce_window",
        "AssertionError: reduce_window of two",
        "of padded windows of several arrays XLA for CPU combines other elements, or in another order, than the "
        "specification",
        tags=frozenset({"window", "padded"}),
        backends="(eager|graph|compiled|lift).*",
        by_specification=True,
    ),
    Documented(
        "select_and_scatter|pool",
        "InconclusiveDimensionOperation",
        "JAX's rule for the gradient of a pool that holds on every platform needs padding that is known",
        backends="(eager|graph|compiled|vectorized).*",
    ),
    Documented(
        "convolution|pool",
        "Module shape refinement failed|positive value for .* window dimension",
        "XLA refuses a convolution of which a symbolic size leaves nothing, also for jax.export",
        backends="native|artifact",
    ),
    Documented(
        ".*",
        "TileOp : The input data type is not supported",
        "`tf.vectorized_map` repeats what is the same for all elements by Tile, which TensorFlow has of few dtypes",
        backends="vectorized",
    ),
)


def is_documented(family: str, case: Case, trial: Trial, error: Exception) -> bool:
    """Whether what happened is in the table; of what is vectorized, also whether it happens in the graph itself."""
    return _is_in_table(family, case, trial, error) or (
        trial.backend == "vectorized" and _is_of_the_graph(family, case, replace(trial, backend="graph"))
    )


def _is_of_the_graph(family: str, case: Case, trial: Trial) -> bool:
    try:
        compare(case, trial)
    except Exception as error:
        return _is_in_table(family, case, trial, error)
    return False


def _is_in_table(family: str, case: Case, trial: Trial, error: Exception) -> bool:
    text = f"{type(error).__name__}: {error}"
    return any(
        re.fullmatch(known.family, family)
        and known.tags <= case.tags
        and re.fullmatch(known.backends, trial.backend)
        and re.fullmatch(known.derivative, trial.derivative)
        and re.search(known.error, text)
        and not (known.drops_nan and KEEPS_NAN)
        and not (known.without_jit and _differs(case, trial, with_jit=False))
        and not (known.with_xla and _differs(case, replace(trial, backend=f"{trial.backend}+xla")))
        and not (known.simplified and _differs(replace(case, in_jax=case.simplified), trial))
        and not (known.of_constants and not _is_of_constants(case, trial))
        and not (known.by_specification and _differs(replace(case, reference=case.specification), trial))
        for known in DOCUMENTED
    )


def _is_of_constants(case: Case, trial: Trial) -> bool:
    return bool(trial.constants) and not _differs(case, replace(trial, constants=frozenset()))


def _differs(case: Case, trial: Trial, *, with_jit: bool = True) -> bool:
    try:
        compare(case, trial, with_jit=with_jit)
    except AssertionError:
        return True
    return False
