"""TFLite models take the sizes that the function takes, and refuse others when they run, as graph mode does."""

import functools
import itertools
import random
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from jaxtf.convert import ConversionOptionError, TFLiteUnsupported, convert_stablehlo, save_model, to_tflite
from jaxtf.convert._tf import tflite_model

RESOLVERS = tf.lite.experimental.OpResolverType
NO_XNNPACK = RESOLVERS.BUILTIN_WITHOUT_DEFAULT_DELEGATES
REFUSED = "gather index out of bounds"


def numbers(*shape, dtype=np.float32):
    """Whole numbers, of which sums and products are exact."""
    return (np.arange(int(np.prod(shape))) % 5 + 1).reshape(shape).astype(dtype)


def open_specs(*ranks, dtype=tf.float32):
    return [tf.TensorSpec([None] * rank, dtype) for rank in ranks]


@functools.lru_cache(4)
def interpreter(model, resolver=RESOLVERS.AUTO):
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # tf.lite.Interpreter moves to ai_edge_litert
        return tf.lite.Interpreter(model_content=model, experimental_op_resolver_type=resolver)


def x64(is_on):
    return jax.enable_x64(is_on) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64(is_on)


def run(model, *arguments, resolver=RESOLVERS.AUTO):
    """The results by their names; of inputs called x, y, z."""
    return interpreter(model, resolver).get_signature_runner()(**dict(zip("xyz", arguments, strict=False)))


def assert_refused(model, *arguments, message=None):
    for resolver in (RESOLVERS.AUTO, NO_XNNPACK):
        with pytest.raises(RuntimeError, match=message):
            run(model, *arguments, resolver=resolver)


def assert_gives(model, expected, *arguments):
    for resolver in (RESOLVERS.AUTO, NO_XNNPACK):
        found = run(model, *arguments, resolver=resolver)
        for array, (_, other) in zip(expected, sorted(found.items()), strict=True):
            np.testing.assert_array_equal(other, array, strict=True)


EXPRESSIONS = ["a", "b", "a", "b", "a + b", "2*a", "a*b", "a - 1", "floordiv(a, 2)", "mod(a, 2)", "max(a, b)", "3"]
CONSTRAINTS = ["a >= b", "mod(a, 2) == 0", "a <= 3", "a + b >= 4", "a == b", "b >= 2", "a*b <= 6", "a >= 2*b - 1"]
FUNCTIONS = {"mod": lambda m, n: m % n, "floordiv": lambda m, n: m // n, "max": max, "__builtins__": {}}


def specification(seed):
    """Shapes of two arguments, one of which has what the variables are solved from, and constraints."""
    chosen = random.Random(seed)
    first = chosen.choice([["a", "b"], ["2*a", "b"], ["a", "a + b"], ["b + 1", "a"]])
    second = [chosen.choice(EXPRESSIONS) for _ in range(2)]
    constraints = chosen.sample(CONSTRAINTS, chosen.choice([0, 0, 1, 1, 2]))
    return ([first, second] if chosen.random() < 0.7 else [second, first]), constraints


def allowed(shapes, constraints):
    """All sizes that Python's integers allow, for small variables."""

    def sizes(a, b):
        values = {"a": a, "b": b}
        if all(eval(constraint, FUNCTIONS, values) for constraint in constraints):
            yield tuple(tuple(eval(size, FUNCTIONS, values) for size in shape) for shape in shapes)

    return {found for a, b in itertools.product(range(1, 13), repeat=2) for found in sizes(a, b)}


def tried(seed, fitting):
    """Some sizes that fit, and such with one that is another, or all."""
    chosen = random.Random(seed)
    small = sorted(sizes for sizes in fitting if max(itertools.chain(*sizes)) <= 8)
    for _ in range(5):
        sizes = [list(shape) for shape in chosen.choice(small)]
        yield sizes
        others = [list(shape) for shape in sizes]
        others[chosen.randrange(2)][chosen.randrange(2)] += chosen.choice([-1, 1])
        yield others
        yield [[chosen.randrange(4) for _ in shape] for shape in sizes]


def with_both(x, y):
    return jnp.pad(x, 1) * 3, jnp.pad(y, 1)  # not empty: such results tf.lite.Interpreter does not give back


@pytest.mark.slow(4)
@pytest.mark.parametrize("seed", range(16))
def test_a_model_runs_where_integers_solve_the_shapes_and_is_refused_elsewhere(seed):
    shapes, constraints = specification(seed)
    fitting = allowed(shapes, constraints)
    if not fitting:
        pytest.skip("no sizes fulfil these constraints")
    model = to_tflite(
        with_both,
        input_signature=open_specs(2, 2),
        polymorphic_shapes=[", ".join(shape) for shape in shapes],
        polymorphic_constraints=constraints,
    )
    for sizes in tried(seed, fitting):
        if any(size < 0 for shape in sizes for size in shape):
            continue
        arguments = [numbers(*shape) for shape in sizes]
        if tuple(map(tuple, sizes)) in fitting:
            x, y = arguments
            assert_gives(model, [np.pad(x, 1) * 3, np.pad(y, 1)], x, y)
        else:
            assert_refused(model, *arguments)


# What was another result, without an error: functions, shapes, constraints, and sizes that do not fit.
SILENT = {
    "a sum": (lambda x, y: x * y.sum(), ["b", "b"], (), [(3,), (2,)]),
    "an element": (lambda x: x[2] * 2, ["b"], ("b >= 3",), [(2,)]),
    "a slice": (lambda x, y: x[: y.shape[0]], ["2*b", "b"], (), [(4,), (3,)]),
    "pairs": (lambda x: x[: x.shape[0] // 2] * 2, ["2*b"], (), [(7,)]),
    "even": (lambda x: x.sum(0), ["b, 4"], ("mod(b, 2) == 0",), [(3, 4)]),
    "a square": (lambda x: x.sum(0) * x.shape[0], ["b, b"], (), [(2, 3)]),
    "no rows": (lambda x: (x.sum(0), x.max(1)), ["b, 4"], (), [(0, 4)]),
    "another row": (lambda x: x.sum(1), ["b, 4"], (), [(3, 5)]),
    "no size open": (lambda x: x.mean(0), ["3, 4"], (), [(2, 4)]),
    "means": (lambda x, y: x.mean(0) + y.mean(0), ["b, 2", "b, 2"], (), [(3, 2), (2, 2)]),
    "a constant": (lambda x, y: jnp.ones(3), ["b", "b"], (), [(3,), (2,)]),
    "a size": (lambda x, y: x.shape[0] * 2, ["b", "b"], (), [(3,), (2,)]),
    "numbers": (lambda x, y: jnp.arange(x.shape[0]), ["b", "b"], (), [(3,), (2,)]),
    "an input": (lambda x, y: x, ["b", "b"], (), [(3,), (2,)]),
    "by name": (lambda x, y: {"s": x.sum(), "t": {"u": y.sum()}}, ["b", "b"], (), [(3,), (2,)]),
}


@pytest.mark.parametrize("name", SILENT)
def test_sizes_that_do_not_fit_are_refused_before_a_result_is_there(name):
    fun, shapes, constraints, sizes = SILENT[name]
    signature = open_specs(*map(len, sizes))
    model = to_tflite(
        fun, input_signature=signature, polymorphic_shapes=shapes, polymorphic_constraints=list(constraints)
    )
    assert_refused(model, *(numbers(*shape) for shape in sizes), message=REFUSED)


def test_nothing_runs_before_the_sizes_are_compared():
    model = to_tflite(
        lambda x, y: jnp.concatenate([x, y], 1) @ jnp.ones((5, 2)),
        input_signature=[tf.TensorSpec([None, 2]), tf.TensorSpec([None, 3])],
        polymorphic_shapes=["b, _", "b, _"],
    )
    assert_refused(model, numbers(3, 2), numbers(2, 3))
    names = [detail["op_name"] for detail in interpreter(model, NO_XNNPACK)._get_ops_details()]
    assert names.index("CONCATENATION") == names.index("GATHER", names.index("LOGICAL_AND")) + 1


@pytest.mark.slow(1)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "bool"])
def test_sizes_are_compared_for_any_dtype(dtype):
    def fun(x, y):
        return jnp.concatenate([x, y])

    with x64(True):
        model = to_tflite(fun, input_signature=open_specs(1, 1, dtype=dtype), polymorphic_shapes=["2*b", "b"])
    given = numbers(6, dtype=dtype)
    expected = np.concatenate([given, given[:3]])
    np.testing.assert_array_equal(run(model, given, given[:3])["output_0"], expected, strict=True)
    assert_refused(model, given[:4], given[:3], message=REFUSED)


@pytest.mark.slow(1)
def test_a_saved_model_refuses_sizes_that_do_not_fit(tmp_path):
    def fun(w, x, y):
        return {"r": x[: y.shape[0]] * w["a"] + w["b"]}

    w = {"a": np.float32(3), "b": np.float32([1, 2])}
    save_model(
        fun,
        w,
        tmp_path,
        input_signatures=[tf.TensorSpec([None, 2]), tf.TensorSpec([None])],
        polymorphic_shapes=["(2*b, _)", "b"],
        gradient_order=0,
        native_serialization=False,
        enable_xla=False,
    )
    model = to_tflite(tmp_path)
    assert_gives(model, [fun(w, numbers(6, 2), numbers(3))["r"]], numbers(6, 2), numbers(3))
    for shapes in ([(4, 2), (3,)], [(6, 1), (3,)], [(0, 2), (0,)]):
        assert_refused(model, *(numbers(*shape) for shape in shapes))


MODULE = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {{
  %c = stablehlo.concatenate %x, %y, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %d = stablehlo.concatenate %y, %y, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %0 = stablehlo.add {} : tensor<?xf32>
  return %0 : tensor<?xf32>
}}"""
LOOP = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %most = stablehlo.constant dense<9.0> : tensor<f32>
  %r = stablehlo.while(%v = %zero) : tensor<f32>
    cond {
      %c = stablehlo.compare LT, %v, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %s = stablehlo.add %x, %y : tensor<?xf32>
      %t = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %t : tensor<f32>
    }
  return %r : tensor<f32>
}"""


def saved(text, folder):
    """The SavedModel of a module that JAX did not export."""
    module, fun = tf.Module(), convert_stablehlo(text)
    module.f = tf.function(lambda x, y: {"r": fun(x, y)}, autograph=False)
    specs = {name: tf.TensorSpec([None], name=name) for name in "xy"}
    tf.saved_model.save(module, folder, signatures=module.f.get_concrete_function(**specs))
    return folder


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("added", "sizes", "others"),
    [("%x, %y", [(3,), (3,)], [(3,), (1,)]), ("%c, %d", [(3,), (3,)], [(1,), (0,)])],
)
def test_a_module_that_jax_did_not_export_refuses_operands_of_different_sizes(added, sizes, others, tmp_path):
    model = to_tflite(saved(MODULE.format(added), tmp_path))
    x, y = (numbers(*shape) for shape in sizes)
    expected = x + y if added == "%x, %y" else np.concatenate([x + y, y + y])
    np.testing.assert_array_equal(run(model, x, y)["r"], expected, strict=True)
    assert_refused(model, *(numbers(*shape) for shape in others))


def test_a_loop_that_compares_sizes_is_refused(tmp_path):
    with pytest.raises(TFLiteUnsupported, match=r"TFLite cannot compare sizes in a loop or in a branch"):
        to_tflite(saved(LOOP, tmp_path))


def test_samples_have_sizes_that_fit():
    def fun(x, y):
        return x @ jnp.ones((4, 3)) + y

    options = {"input_signature": [tf.TensorSpec([None, 4]), tf.TensorSpec([None, 3])]}
    options["polymorphic_shapes"] = ["b, _", "b, _"]
    samples = [[numbers(2, 4), numbers(2, 3)]]
    model = to_tflite(fun, **options, representative_data=samples)
    assert_refused(model, numbers(2, 4), numbers(3, 3))
    message = "representative_data[1] must have sizes that the polymorphic shapes allow. Got: 'x' of shape (2, 4), 'y'"
    with pytest.raises(ConversionOptionError, match=re.escape(message)):
        to_tflite(fun, **options, representative_data=[*samples, [numbers(2, 4), numbers(1, 3)]])


@pytest.mark.parametrize("samples", [None, [[numbers(2, 64)]]], ids=["float", "int8"])
def test_arrays_of_a_model_begin_at_multiples_of_16(samples):
    model = to_tflite(
        lambda x: jnp.tanh(x @ numbers(64, 33)) @ numbers(33, 3),
        input_signature=[tf.TensorSpec([None, 64])],
        polymorphic_shapes=["b, _"],
        representative_data=samples,
    )
    arrays = [buffer.data.tobytes() for buffer in tflite_model(model).buffers if buffer.data is not None]
    large = [array for array in arrays if len(array) >= 99]
    assert len(large) == 2
    assert all(model.index(array) % 16 == 0 for array in large)


def test_a_model_of_static_sizes_has_no_operations_for_them():
    model = to_tflite(lambda x: x * 2, input_signature=[tf.TensorSpec([3, 4])])
    assert [detail["op_name"] for detail in interpreter(model, NO_XNNPACK)._get_ops_details()] == ["MUL"]
    lite = interpreter(model)
    with pytest.raises(RuntimeError, match=r"dimension"):
        lite.resize_tensor_input(lite.get_input_details()[0]["index"], [2, 4], strict=True)
