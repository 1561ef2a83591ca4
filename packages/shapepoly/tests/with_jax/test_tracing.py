"""JAX traces and lowers with symbolic shapes; the result shapes are those of plain JAX at three sizes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxtf.shapepoly import IntegerOperations, SymbolicScope, evaluate, max_dim, min_dim, symbolic_shape

SIZES = ({"b": 2, "d": 3, "h": 8, "w": 5}, {"b": 7, "d": 1, "h": 16, "w": 9}, {"b": 5, "d": 4, "h": 11, "w": 20})


def attention(q, k, v):
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores), v)


def conv(padding, strides, x, w, **options):
    return lax.conv_general_dilated(x, w, strides, padding, **options)


def pool(operation, initial, padding, x):
    return lax.reduce_window(x, initial, operation, (1, 1, 2, 2), (1, 1, 2, 2), padding)


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))


def running_sum(x):
    return lax.scan(lambda carry, row: (carry + row, carry * row), jnp.zeros(x.shape[1]), x)


def until_positive(x):
    return lax.while_loop(lambda state: state.sum() < 0, lambda state: state + 1, x)


def columns_in_loop(x):
    return lax.fori_loop(0, x.shape[0], lambda i, total: total + x[i], jnp.zeros(x.shape[1:]))


MATRIX = ["(b, 2*d)"]
IMAGE = ["(b, 3, h, w)"]
KERNEL = "(8, 3, 3, 3)"
SEQUENCE = "(b, d, 16)"

CASES = {
    "elementwise": (lambda x: jnp.sin(x) * 2 + x, MATRIX),
    "where": (lambda x: jnp.where(x > 0, x, 0), MATRIX),
    "clip": (lambda x: jnp.clip(x, -1, 1), MATRIX),
    "matmul": (lambda x: x @ x.T, MATRIX),
    "dot_general": (lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), ["(b, h, w)", "(b, w, 3)"]),
    "einsum": (lambda x: jnp.einsum("bd,ed->be", x, x), MATRIX),
    "einsum of three": (lambda x: jnp.einsum("bd,ed,eb->d", x, x, x @ x.T), MATRIX),
    "tensordot": (lambda x: jnp.tensordot(x, x, ((0,), (0,))), MATRIX),
    "reshape to a vector": (lambda x: x.reshape(-1), MATRIX),
    "reshape to rows": (lambda x: x.reshape(2, -1), MATRIX),
    "reshape in pairs": (lambda x: x.reshape(x.shape[0], -1, 2), MATRIX),
    "reshape by products": (lambda x: x.reshape(x.shape[0] * x.shape[1]), MATRIX),
    "ravel and back": (lambda x: x.ravel().reshape(x.shape), MATRIX),
    "transpose": (lambda x: x.transpose(1, 0), MATRIX),
    "expand and squeeze": (lambda x: jnp.squeeze(x[:, None, :, None], 3), MATRIX),
    "broadcast_to": (lambda x: jnp.broadcast_to(x, (3, *x.shape)), MATRIX),
    "broadcasting a row": (lambda x: x + jnp.ones(x.shape[1]), MATRIX),
    "sum": (lambda x: (x.sum(), x.sum(0), x.sum(1, keepdims=True)), MATRIX),
    "mean": (lambda x: (x.mean(), x.mean(0)), MATRIX),
    "mean by division": (lambda x: x.sum(0) / x.shape[0], MATRIX),
    "variance": (lambda x: (x.var(0), x.std(1)), MATRIX),
    "max and argmax": (lambda x: (x.max(0), x.argmax(1)), MATRIX),
    "cumsum": (lambda x: jnp.cumsum(x, 1), MATRIX),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, 1), MATRIX),
    "softmax": (jax.nn.softmax, MATRIX),
    "layer norm": (layer_norm, MATRIX),
    "attention": (attention, [SEQUENCE, SEQUENCE, SEQUENCE]),
    "slice from": (lambda x: x[1:], MATRIX),
    "slice but the last": (lambda x: x[:-1], MATRIX),
    "slice with a step": (lambda x: x[::2, ::3], MATRIX),
    "slice backwards": (lambda x: x[::-1], MATRIX),
    "slice in half": (lambda x: x[:, : x.shape[1] // 2], MATRIX),
    "slice to a multiple of four": (lambda x: x[: 4 * (x.shape[0] // 4)], MATRIX),
    "split in two": (lambda x: jnp.split(x, 2, axis=1), MATRIX),
    "index": (lambda x: (x[0], x[:, -1]), MATRIX),
    "gather": (lambda x: x[jnp.array([0, 1, 0])], MATRIX),
    "take_along_axis": (lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1), MATRIX),
    "dynamic_slice": (lambda x: lax.dynamic_slice_in_dim(x, 0, x.shape[1] - 1, 1), MATRIX),
    "scatter": (lambda x: x.at[0].set(1.0).at[:, 0].add(2.0), MATRIX),
    "concatenate": (lambda x: jnp.concatenate([x, x[:1]], 0), MATRIX),
    "stack": (lambda x: jnp.stack([x, x], 1), MATRIX),
    "pad": (lambda x: jnp.pad(x, ((1, 2), (0, 3))), MATRIX),
    "pad to a multiple": (lambda x: jnp.pad(x, ((0, -x.shape[0] % 8), (0, 0))), MATRIX),
    "tile": (lambda x: jnp.tile(x, (2, 1)), MATRIX),
    "roll": (lambda x: jnp.roll(x, 1, 0), MATRIX),
    "arange": (lambda x: jnp.arange(x.shape[1]), MATRIX),
    "arange with a step": (lambda x: jnp.arange(1, x.shape[1], 2), MATRIX),
    "linspace": (lambda x: jnp.linspace(0.0, 1.0, x.shape[1]), MATRIX),
    "iota and eye": (lambda x: (lax.iota("int32", x.shape[0]), jnp.eye(x.shape[0], x.shape[1])), MATRIX),
    "tril": (jnp.tril, MATRIX),
    "one_hot": (lambda x: jax.nn.one_hot(jnp.argmax(x, 1), x.shape[1]), MATRIX),
    "sort": (lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0)), MATRIX),
    "top_k": (lambda x: lax.top_k(x, 2), MATRIX),
    "searchsorted": (jnp.searchsorted, ["(5,)", "(b, d)"]),
    "vmap": (jax.vmap(lambda row: row / row.sum()), MATRIX),
    "vmap of dimensions": (jax.vmap(lambda row: row * row.shape[0]), MATRIX),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda y: y + 1, lambda y: y - 1, x), MATRIX),
    "scan": (running_sum, MATRIX),
    "while": (until_positive, MATRIX),
    "fori_loop over a dimension": (columns_in_loop, MATRIX),
    "map": (lambda x: lax.map(jnp.sum, x), MATRIX),
    "convolution, same": (functools.partial(conv, "SAME", (1, 1)), [*IMAGE, KERNEL]),
    "convolution, same, stride 2": (functools.partial(conv, "SAME", (2, 2)), [*IMAGE, KERNEL]),
    "convolution, valid, stride 2": (functools.partial(conv, "VALID", (2, 2)), ["(b, 3, h + 2, w + 2)", KERNEL]),
    "convolution, dilated": (functools.partial(conv, "SAME", (1, 1), rhs_dilation=(2, 2)), [*IMAGE, KERNEL]),
    "max pooling": (functools.partial(pool, lax.max, -np.inf, "SAME"), IMAGE),
    "average pooling": (functools.partial(pool, lax.add, 0.0, "SAME"), IMAGE),
    "global pooling": (lambda x: x.mean((2, 3)), IMAGE),
    "image resize": (lambda x: jax.image.resize(x, (*x.shape[:2], 2 * x.shape[2], 7), "bilinear"), IMAGE),
    "segment_sum": (lambda x: jax.ops.segment_sum(x, jnp.zeros(x.shape[0], "int32"), x.shape[0]), MATRIX),
    "random normal": (lambda x: jax.random.normal(jax.random.key(0), x.shape), MATRIX),
    "dropout": (lambda x: jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), x, 0), MATRIX),
    "associative reduce": (lambda x: lax.reduce(x, 0.0, lax.add, (0,)), MATRIX),
    "meshgrid": (lambda x: jnp.meshgrid(x[0], x[:, 0]), MATRIX),
    "outer": (lambda x: jnp.outer(x[0], x[:, 0]), MATRIX),
    "size in an array": (lambda x: (jnp.array(x.shape), x + x.shape[0], x.shape[0] / 2), MATRIX),
    "shape from max and min": (lambda x: jnp.zeros((max_dim(*x.shape), min_dim(*x.shape))), MATRIX),
    "shape from quotient and rest": (lambda x: jnp.ones((x.shape[0] // 3 + 1, x.shape[1] % 5 + x.shape[0])), MATRIX),
    "grad of matmul": (jax.grad(lambda x: jnp.tanh(x @ x.T).sum()), MATRIX),
    "grad of mean": (jax.grad(lambda x: (x**2).mean()), MATRIX),
    "grad of scan": (jax.grad(lambda x: running_sum(x)[1].sum()), MATRIX),
    "grad of slice": (jax.grad(lambda x: x[1:, ::2].sum()), MATRIX),
    "grad of gather": (jax.grad(lambda x: x[jnp.array([0, 1, 0])].sum()), MATRIX),
    "grad of convolution": (
        jax.grad(lambda x, w: conv("SAME", (2, 2), x, w).sum(), (0, 1)),
        ["(b, 3, 2*h, 2*w)", KERNEL],
    ),
    "grad of max pooling": (
        jax.grad(lambda x: pool(lax.max, -np.inf, "VALID", x).sum()),
        ["(b, 3, h + 1, w + 1)"],
    ),
    "grad of attention": (jax.grad(lambda q, k, v: attention(q, k, v).sum(), (0, 1, 2)), [SEQUENCE] * 3),
    "grad of layer norm": (jax.grad(lambda x: layer_norm(x).sum()), MATRIX),
    "jacobian-vector product": (lambda x: jax.jvp(jnp.tanh, (x,), (x,)), MATRIX),
    "checkpoint": (jax.grad(lambda x: jax.checkpoint(jnp.sin)(x).sum()), MATRIX),
}


def specs(texts, scope):
    return [jax.ShapeDtypeStruct(symbolic_shape(text, scope=scope), "float32") for text in texts]


def shapes_at(tree, sizes):
    return jax.tree.map(
        lambda leaf: (tuple(evaluate(d, sizes, IntegerOperations()) for d in leaf.shape), leaf.dtype), tree
    )


@pytest.mark.parametrize("name", CASES)
def test_a_function_lowers_with_symbolic_shapes(name):
    function, texts = CASES[name]
    arguments = specs(texts, SymbolicScope())
    traced = jax.jit(function).trace(*arguments)
    module = traced.lower().as_text()
    assert '%arg0: tensor<i32> {jax.global_constant = "b"}' in module
    for sizes in SIZES:
        concrete = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes_at(arguments, sizes)]
        expected = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), jax.eval_shape(function, *concrete))
        assert shapes_at(traced.out_info, sizes) == expected


def test_lowering_passes_dimension_variables_as_arguments():
    module = jax.jit(lambda x: x * 2).trace(*specs(["(b, 2*d)"], SymbolicScope())).lower().as_text()
    assert '%arg0: tensor<i32> {jax.global_constant = "b"}, %arg1: tensor<i32> {jax.global_constant = "d"}' in module


def test_several_platforms_lower_at_once():
    traced = jax.jit(lambda x: jnp.sin(x) / x.shape[0]).trace(*specs(["(b, 2*d)"], SymbolicScope()))
    module = traced.lower(lowering_platforms=("cpu", "cuda", "tpu")).as_text()
    assert '{jax.global_constant = "_platform_index"}' in module


def test_constraints_let_jax_trace_what_it_could_not():
    def crop(x):
        return x[:, :16]

    scope = SymbolicScope(["w >= 16"])
    (shape,) = jax.tree.leaves(jax.jit(crop).trace(*specs(["(b, w)"], scope)).out_info)
    assert str(shape.shape) == "(b, 16)"
    scope = SymbolicScope(["floordiv(w, 2) == b"])
    x, y = specs(["(b,)", "(w,)"], scope)
    jax.jit(lambda x, y: x + y[: y.shape[0] // 2]).trace(x, y).lower()


def test_dimensions_that_are_not_always_equal_do_not_broadcast():
    x, y = specs(["(v,)", "(4,)"], SymbolicScope())
    with pytest.raises(TypeError, match=r"add got incompatible shapes for broadcasting: \(v,\), \(4,\)"):
        jax.jit(lambda x, y: x + y).trace(x, y)


@pytest.mark.parametrize(
    ("function", "texts", "error", "message"),
    [
        (
            lambda x: jax.random.permutation(jax.random.key(0), x),
            MATRIX,
            NotImplementedError,
            "shape polymorphism for `permutation`",
        ),
        (
            lambda x: jnp.searchsorted(x[0], x[:, 0]),
            MATRIX,
            jax.errors.InconclusiveDimensionOperation,
            "used in a context that requires a constant",
        ),
        (
            jax.grad(lambda x, w: conv("SAME", (2, 2), x, w).sum()),
            [*IMAGE, KERNEL],
            ValueError,
            "padding argument to conv_general_dilated should be a string or a sequence",
        ),
        (lambda x: x[x.shape[0] - 1], MATRIX, IndexError, "only integers, slices .* are valid indices. Got b - 1"),
    ],
)
def test_what_jax_itself_refuses_with_symbolic_shapes(function, texts, error, message):
    with pytest.raises(error, match=message):
        jax.jit(function).trace(*specs(texts, SymbolicScope()))


def test_a_reshape_that_may_leave_a_remainder_is_refused():
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="Cannot divide evenly the sizes of shapes"):
        jax.jit(lambda x: x.reshape(2, -1)).trace(*specs(["(b, 5, 7)"], SymbolicScope()))
    jax.jit(lambda x: x.reshape(2, -1)).trace(*specs(["(2*b, 5, 7)"], SymbolicScope()))


RESHAPES = {
    "pairs of rows": (
        lambda x: x.reshape(x.shape[0] // 2, 2, -1),
        "(b, 4)",
        "Cannot divide '4*b' by '2*floordiv(b, 2)': whether the divisor is nonzero is inconclusive.\n"
        "  it is 0 for b=1\n"
        '  if b is always a multiple of 2 for you, write 2*b for b in the shapes, or add the constraint "{}"\n',
        ["mod(b, 2) == 0"],
        "(2*b, 4)",
    ),
    "two heads": (
        lambda x: x.reshape(x.shape[0], x.shape[1] // 2, -1),
        "(b, n)",
        "Cannot divide 'b*n' by 'b*floordiv(n, 2)': whether the divisor is nonzero is inconclusive.\n"
        "  it is 0 for b=1, n=1\n"
        '  if n is always a multiple of 2 for you, write 2*n for n in the shapes, or add the constraint "{}"\n',
        ["mod(n, 2) == 0"],
        "(b, 2*n)",
    ),
    "patches": (
        lambda x: x.reshape(x.shape[0] // 2, x.shape[1] // 4, -1),
        "(h, w)",
        "Cannot divide 'h*w' by 'floordiv(h, 2)*floordiv(w, 4)': whether the divisor is nonzero is inconclusive.\n"
        "  it is 0 for h=1, w=1\n"
        "  if h is always a multiple of 2 for you, write 2*h for h in the shapes\n"
        "  and if w is always a multiple of 4 for you, write 4*w for w in the shapes\n",
        [],
        "(2*h, 4*w)",
    ),
    "one row less": (
        lambda x: x.reshape(-1, x.shape[0] - 1),
        "(b, 4*b - 4)",
        "Cannot divide '4*b^2 - 4*b' by 'b - 1': whether the divisor is nonzero is inconclusive.\n"
        "  it is 0 for b=1\n"
        '  if the divisor is always positive for you, add the constraint "{}"\n',
        ["b >= 2"],
        "(b + 1, 4*b)",
    ),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_a_reshape_by_what_may_be_zero_is_refused_with_constraints_under_which_jax_traces_it(name):
    function, text, message, constraints, other_text = RESHAPES[name]
    with pytest.raises(jax.errors.InconclusiveDimensionOperation) as caught:
        jax.jit(function).trace(*specs([text], SymbolicScope()))
    more = "  see jaxtf's page 'Symbolic dimensions', section 'Division'"
    assert str(caught.value) == message.format(*constraints) + more
    if constraints:
        jax.jit(function).trace(*specs([text], SymbolicScope(constraints)))
    jax.jit(function).trace(*specs([other_text], SymbolicScope()))


@pytest.mark.parametrize(
    ("function", "constraint"),
    [
        (lambda x: x.reshape(-1, x.shape[0] - 1), "b >= 2"),
        (lambda x: x.reshape(x.shape[0] // 2, 3, -1), "mod(b, 2) == 0"),
    ],
)
def test_a_reshape_that_leaves_a_remainder_even_under_the_constraint_is_reported(function, constraint):
    with pytest.raises(jax.errors.InconclusiveDimensionOperation) as caught:
        jax.jit(function).trace(*specs(["(b, 4)"], SymbolicScope()))
    *_, advice, remainder, _ = str(caught.value).splitlines()
    assert advice.endswith(f'add the constraint "{constraint}"')
    assert remainder == "  a reshape also needs a division without remainder, and this one is not known to have none"
    with pytest.raises(jax.errors.InconclusiveDimensionOperation, match="Cannot divide evenly the sizes of shapes"):
        jax.jit(function).trace(*specs(["(b, 4)"], SymbolicScope([constraint])))


def test_a_trace_is_found_again_for_equal_shapes():
    calls = []

    @jax.jit
    def function(x):
        calls.append(x.shape)
        return x + 1

    scope = SymbolicScope()
    for text in ("(b, 2*d)", "(b, d + d)", "(b, 2*d)"):
        function.trace(*specs([text], scope))
    assert len(calls) == 1
    function.trace(*specs(["(b, 2*d)"], SymbolicScope()))
    assert len(calls) == 2


@pytest.mark.parametrize("constraints", [["b == 7"], ["b >= 7", "b <= 7"], ["2*b == 14"]])
def test_a_size_that_constraints_fix_is_static_to_jax(constraints):
    """JAX interns avals for the whole process: one that equals a static one would take its place."""
    (b,) = symbolic_shape("b", constraints=constraints)
    aval = jax.core.ShapedArray((b, 7), jnp.float32)
    assert [type(size) for size in aval.shape] == [int, int]
    assert jax.jit(lambda x: x + jnp.ones((7, 7))).trace(aval).out_info.shape == (7, 7)


@pytest.mark.parametrize(
    ("constraint", "size"),
    [
        ("a == 2*b", lambda a, b: a // b + 2),
        ("mod(a, 4) == 3", lambda a, b: a % 4 + 1),
        ("a == b + 3", lambda a, b: a - b + 1),
        ("min(a, b) >= 4", lambda a, b: (a + b + 4) // (a + b) + 3),
    ],
)
def test_a_result_that_constraints_fix_is_static_to_jax(constraint, size):
    a, b = symbolic_shape("a, b", constraints=[constraint])
    function = jax.jit(lambda x, y: jnp.zeros(size(x.shape[0], y.shape[0])) + jnp.ones(4))
    traced = function.trace(*(jax.ShapeDtypeStruct((d,), "float32") for d in (a, b)))
    assert traced.out_info.shape == (4,)
    assert type(traced.out_info.shape[0]) is int


@pytest.mark.parametrize(
    ("function", "size"),
    [
        (lambda x: x[:, : min_dim(x.shape[1], 512)].reshape(-1), lambda a, b: b * min_dim(a, 512)),
        (lambda x: x[:, : x.shape[1] % 4].reshape(-1), lambda a, b: b * (a % 4)),
        (lambda x: jnp.pad(x, ((0, 0), (0, -x.shape[1] % 8))).reshape(-1), lambda a, b: b * (a + -a % 8)),
        (lambda x: jnp.zeros((x.shape[0], -(-x.shape[1] // 8))).reshape(-1), lambda a, b: b * -(-a // 8)),
    ],
)
def test_a_reshape_knows_that_sizes_of_products_are_not_negative(function, size):
    b, a = symbolic_shape("b, a")
    traced = jax.jit(function).trace(jax.ShapeDtypeStruct((b, a), "float32"))
    assert traced.out_info.shape == (size(a, b),)


@pytest.mark.parametrize(
    ("constraint", "texts", "function", "shape"),
    [
        (
            "mod(b, 4) == 0",
            ["b, c, d"],
            lambda x: x.reshape(4, x.shape[0] // 4, *x.shape[1:]).reshape(x.shape[0], -1),
            "b, c*d",
        ),
        ("a == 2*b", ["b, 2, c, d", "a, c, d"], lambda x, y: x.reshape(-1) + y.reshape(-1), "2*b*c*d"),
        ("a == 2*b", ["a"], lambda x: x.reshape(2, -1), "2, b"),
        ("mod(b, 4) == 0", ["b, c"], lambda x: x.reshape(x.shape[0] // 4, -1), "floordiv(b, 4), 4*c"),
        ("a*b == c*d", ["a, b", "c, d"], lambda x, y: x.reshape(y.shape) + y, "c, d"),
        ("a*c == b*d", ["a, b, c"], lambda x: x.reshape(x.shape[1], -1), "b, b*d"),
        ("mod(a*b, c) == 0", ["a, b", "c"], lambda x, y: x.reshape(-1, y.shape[0]) + y, "floordiv(a*b, c), c"),
    ],
)
def test_reshapes_know_what_equalities_make_equal(constraint, texts, function, shape):
    scope = SymbolicScope([constraint])
    traced = jax.jit(function).trace(*specs(texts, scope))
    assert traced.out_info.shape == symbolic_shape(shape, scope=scope)
