"""Who in JAX asks whether sizes are equal, and whether values depend on the answer.

`n == 1` is False for a dimension variable `n`, which may be 1. What JAX does where it is False must be right for 1 too:
it is where it raises an error, or goes a general way to the same values. Here the functions of JAX are traced with
symbolic sizes, and whoever asks is on one of two lists: `HARMLESS`, read and compared at sizes where the answer would
be True, or jaxtf.shapepoly's own, where the question is an error.
"""

import inspect
import itertools
from collections import defaultdict

import jax
import jax.numpy as jnp
import jax.scipy.fft
import jax.scipy.integrate
import jax.scipy.linalg
import jax.scipy.signal
import jax.scipy.special
import numpy as np
import pytest

from jaxtf.serialization import export
from jaxtf.shapepoly import InconclusiveDimensionOperation, is_symbolic_dim, symbolic_shape
from jaxtf.shapepoly._dimensions.dimension import Dimension

MODULES = {
    "jax.numpy.fft": jnp.fft,
    "jax.numpy.linalg": jnp.linalg,
    "jax.scipy.signal": jax.scipy.signal,
    "jax.scipy.linalg": jax.scipy.linalg,
    "jax.scipy.fft": jax.scipy.fft,
    "jax.scipy.integrate": jax.scipy.integrate,
    "jax.nn": jax.nn,
    "jax.lax.linalg": jax.lax.linalg,
    "jax.lax": jax.lax,
    "jax.numpy": jnp,
    "jax.scipy.special": jax.scipy.special,
}
ONE = ("n", "n, n", "m, n", "n, 3", "2, n, n")
TWO = ("n; n", "n; m", "n; 3", "n, n; n", "n, n; n, n", "m, n; n", "n, 3; 3, n")
HARMLESS = {
    "JAX's caches and the equality of its own classes: the question is whether two sizes are the same everywhere": [
        "core:__new__",
        "core:to_ct_aval",
        "core:to_tangent_aval",
        "interpreters.batching:__eq__",
        "interpreters.partial_eval:default_process_primitive",
        "pjit:_infer_params",
        "tree_util:__eq__",
        "util:wrapper",
    ],
    "shape rules: an error where the sizes differ, and the rule for all sizes where they do not": [
        "core:definitely_equal",
        "lax.lax:<genexpr>",
        "lax.lax:_concatenate_shape_rule",
        "lax.lax:_select_shape_rule",
        "lax.linalg:_cholesky_shape_rule",
        "lax.linalg:_cholesky_update_shape_rule",
        "lax.linalg:_eig_shape_rule",
        "lax.linalg:_hessenberg_shape_rule",
        "lax.linalg:_schur_shape_rule",
        "lax.linalg:_symmetric_product_shape_rule",
        "lax.linalg:_triangular_solve_shape_rule",
        "lax.linalg:_tridiagonal_shape_rule",
        "lax.linalg:cholesky",
        "lax.linalg:eigh",
    ],
    "an error where sizes that have to be equal, or even, are not known to be": [
        "nn.functions:glu",
        "numpy.lax_numpy:cross",
        "numpy.linalg:_lstsq",
        "numpy.linalg:cholesky",
        "numpy.linalg:cross",
        "numpy.linalg:eigh",
        "numpy.linalg:inv",
        "numpy.linalg:tensorinv",
        "numpy.linalg:tensorsolve",
        "numpy.polynomial:poly",
        "numpy.tensor_contractions:vecdot",
        "numpy.vectorize:_update_dim_sizes",
        "scipy.linalg:_eigh",
        "scipy.linalg:expm",
        "scipy.linalg:expm_frechet",
        "scipy.linalg:leslie",
        "scipy.linalg:rsf2csf",
        "third_party.scipy.linalg:funm",
    ],
    "a general way to the same values": [
        "lax.lax:broadcast_in_dim",  # the operand itself where it has the shape
        "lax.linalg:<genexpr>",  # broadcasts batches
        "lax.slicing:_slice_transpose_fancy",  # what the padding of no elements is
        "numpy.lax_numpy:diagonal",
        "numpy.lax_numpy:nonzero",  # zeros, where there are no elements
        "numpy.lax_numpy:trapezoid",  # one distance for all, where there is one
        "numpy.linalg:det",  # formulas of 2 and 3 rows
        "numpy.linalg:slogdet",  # of 1 and 2
        "numpy.vectorize:<genexpr>",  # leaves out a batch of one
        "scipy.linalg:_fiedler_companion",
        "scipy.linalg:_rsf2csf_2d",  # no rotation for one element
        "scipy.signal:<genexpr>",  # a product where one of the signals has one element
    ],
}
KNOWN = frozenset(itertools.chain.from_iterable(HARMLESS.values()))


def shapes_of(spec):
    """The shapes of arguments, such as `[(n, 3), (3, n)]` for `"n, 3; 3, n"`."""
    names = sorted(set(spec) & set("mn"))
    sizes = dict(zip(names, symbolic_shape(", ".join(names)), strict=True))
    words = [[size.strip() for size in shape.split(",")] for shape in spec.split(";")]
    return [tuple(sizes.get(word) or int(word) for word in shape) for shape in words]


def traced(function, spec):
    """Traces a function and its derivatives, as far as it takes such arguments."""

    def value(*args):
        return function(*args)

    def total(*args):
        return sum(jnp.real(leaf).sum() for leaf in jax.tree.leaves(function(*args)))

    def tangents(*args):
        return jax.jvp(value, args, args)

    specs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes_of(spec)]
    for traced in (value, jax.grad(total), tangents):
        try:
            jax.eval_shape(traced, *specs)
        except Exception:  # it takes other arguments, or these sizes are refused
            return


def functions_of(module):
    for name in dir(module):
        function = getattr(module, name)
        if callable(function) and not name.startswith("_") and not inspect.isclass(function):
            yield function


def may_be_equal(size, other):
    if not (isinstance(other, int | np.integer) or is_symbolic_dim(other)):
        return False
    difference = size - other
    return is_symbolic_dim(difference) and not size.scope.algebra.decider.is_never_zero(difference._expression)


def open_questions(run):
    """Who asks in `run`, where the answer is False and sizes may be equal: module and function."""
    found = defaultdict(set)
    equals = Dimension._equals

    def observed(self, other, asking):
        answer = equals(self, other, asking)
        if answer is False and may_be_equal(self, other):
            module = str(asking.f_globals.get("__name__"))
            if module.startswith("jax."):
                found[f"{module.removeprefix('jax._src.')}:{asking.f_code.co_name}"].add(f"{self} == {other}")
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dimension, "_equals", observed)
        run()
    return found


@pytest.mark.slow(3)
@pytest.mark.parametrize("name", MODULES)
def test_who_asks_is_known(name):
    def run():
        for function, spec in itertools.product(functions_of(MODULES[name]), ONE + TWO):
            traced(function, spec)

    found = open_questions(run)
    unknown = {asking: sorted(questions)[:3] for asking, questions in found.items() if asking not in KNOWN}
    assert not unknown, "read these, and compare their values where the answer is True"


ASK = {
    "the derivative of jax.numpy.linalg.det": (jax.grad(jnp.linalg.det), "n, n", 'the constraint "n >= 2"'),
    "jax.numpy.array_equal": (jnp.array_equal, "n; 3", 'the constraint "n == 3"'),
    "jax.numpy.fft.rfftfreq": (lambda x: jnp.fft.rfftfreq(x.shape[0]), "n", 'the constraint "mod(n, 2) == 0"'),
}


@pytest.mark.parametrize("what", ASK)
def test_where_values_depend_on_it_the_question_is_an_error(what):
    function, spec, advice = ASK[what]
    with pytest.raises(InconclusiveDimensionOperation) as refused:
        jax.eval_shape(function, *[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes_of(spec)])
    assert what in str(refused.value)
    assert advice in str(refused.value)


@pytest.mark.parametrize(
    ("shape", "constraint", "values"),
    [("n, n", "n >= 2", (2, 3, 5)), ("n, n", "n == 1", (1,)), ("n, n", "n <= 1", (1,))],
)
def test_with_the_constraint_that_decides_the_values_are_those_of_jax(shape, constraint, values):
    derivative = jax.grad(jnp.linalg.det)
    exported = export(jax.jit(derivative))(
        jax.ShapeDtypeStruct(symbolic_shape(shape, constraints=[constraint]), jnp.float32)
    )
    for n in values:
        a = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
        np.testing.assert_allclose(exported.call(a), derivative(a), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [4, 5])
def test_frequencies_are_those_of_the_size(size):
    spec = symbolic_shape("n", constraints=[f"mod(n, 2) == {size % 2}"])
    exported = export(jax.jit(lambda x: jnp.fft.rfftfreq(x.shape[0])))(jax.ShapeDtypeStruct(spec, jnp.float32))
    np.testing.assert_array_equal(exported.call(np.zeros(size, np.float32)), jnp.fft.rfftfreq(size))


def test_a_function_of_the_same_name_elsewhere_may_ask():
    def array_equal(x):
        return x.shape[0] == 3

    (n,) = symbolic_shape("n")
    assert not array_equal(jax.ShapeDtypeStruct((n,), jnp.float32))
