"""From a JAX function to an `Exported`."""

import functools
import importlib
import sys

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import ShapeDtypeStruct
from jax.extend.mlir import ir
from jax.interpreters import mlir

from jaxtf.serialization import (
    ArgumentMismatch,
    CallingConventionError,
    DisabledSafetyCheck,
    HostCallbackError,
    PlatformError,
    ReferenceRefused,
    StablehloVersionError,
    UnstableCustomCall,
    UnstableDialect,
    default_export_platform,
    deserialize,
    export,
    negotiate,
    tensorflow_reads,
)
from jaxtf.serialization._jax_values import settings
from jaxtf.serialization._program import portable_artifact
from jaxtf.serialization._record.tensorflow import RELEASES
from jaxtf.serialization.interop import export_for_graph
from jaxtf.shapepoly import ScopeError, symbolic_shape

F32 = jnp.float32


def double(x):
    return 2 * x


def test_the_record_says_what_was_exported():
    exported = export(lambda x, y, *, k: {"sum": x + k, "y": y}, platforms=("cpu", "tpu"))(
        ShapeDtypeStruct((2, 3), F32), ShapeDtypeStruct((), jnp.int32), k=ShapeDtypeStruct((3,), F32)
    )
    assert [str(aval) for aval in exported.in_avals] == ["float32[2,3]", "int32[]", "float32[3]"]
    assert [str(aval) for aval in exported.out_avals] == ["float32[2,3]", "int32[]"]
    assert exported.in_tree == jax.tree.structure(((0, 0), {"k": 0}))
    assert exported.out_tree == jax.tree.structure({"sum": 0, "y": 0})
    assert exported.platforms == ("cpu", "tpu")
    assert exported.nr_devices == 1
    assert exported.ordered_effects == exported.unordered_effects == ()


def test_printing_an_export_shows_its_signature_not_its_bytes():
    b, d = symbolic_shape("b, d")
    exported = export(double)(ShapeDtypeStruct((b, 2 * d), F32))
    assert str(exported) == "Exported(double: (float32[b,2*d]) -> (float32[b,2*d]) for cpu)"
    assert "mlir_module_serialized" not in repr(exported)


def test_exporting_twice_gives_equal_records():
    spec = ShapeDtypeStruct((3,), F32)
    jitted = jax.jit(double)
    assert export(jitted)(spec).has_same_function(export(jitted)(spec))
    assert export(jitted)(spec) != export(jitted)(ShapeDtypeStruct((4,), F32))


class Matrix:
    """A node that looks at what it is made of; nothing but arrays of two axes will do."""

    def __init__(self, rows):
        if len(rows.shape) != 2:
            raise TypeError("a matrix has two axes")
        self.rows = rows


jax.tree_util.register_pytree_with_keys(
    Matrix, lambda m: (((jax.tree_util.GetAttrKey("rows"), m.rows),), None), lambda _, children: Matrix(children[0])
)


def test_classes_may_look_at_their_children():
    b = symbolic_shape("b, 3")
    exported = export(lambda m, k: {"m": m, "sum": m.rows.sum() + k})(Matrix(ShapeDtypeStruct(b, F32)), 2.0)
    assert exported.in_names == ("args[0].rows", "args[1]")
    assert exported.out_names == ("result['m'].rows", "result['sum']")
    rows = np.ones((2, 3), F32)
    found = exported.call(Matrix(rows), 2.0)
    np.testing.assert_array_equal(found["m"].rows, rows)
    assert found["sum"] == 8


def test_the_places_of_arguments_are_named_where_a_class_refuses_what_is_put_in():
    exported = export(lambda m, k: m.rows + k)(Matrix(ShapeDtypeStruct((2, 3), F32)), 2.0)
    with pytest.raises(ArgumentMismatch, match=r"args\[1\]: exported as one array, and in the"):
        exported.call(Matrix(np.ones((2, 3), F32)), {"x": 1.0})


def test_unused_arguments_are_dropped_and_recorded():
    exported = export(lambda a, b, c: (a, c))(*[ShapeDtypeStruct((2,), F32)] * 3)
    assert exported.module_kept_var_idx == (0, 2)
    assert exported.mlir_module().count("%arg") > 0


def test_a_method_that_jit_was_applied_to_is_exported_with_its_self():
    class Scaled:
        factor = 2.0

        @functools.partial(jax.jit, static_argnums=0)
        def scaled(self, x):
            return x * self.factor

    exported = export(Scaled().scaled)(ShapeDtypeStruct((3,), F32))
    assert [str(aval) for aval in exported.in_avals] == ["float32[3]"]
    np.testing.assert_array_equal(exported.call(np.ones(3, F32)), [2, 2, 2])


def test_a_jitted_function_keeps_its_static_arguments():
    @functools.partial(jax.jit, static_argnums=1)
    def power(x, n):
        return x**n

    exported = export(power)(ShapeDtypeStruct((2,), F32), 3)
    assert len(exported.in_avals) == 1
    np.testing.assert_array_equal(exported.call(np.array([2.0, 3.0], F32)), [8.0, 27.0])


def test_the_avals_of_an_export_are_specifications_for_another():
    first = export(double)(ShapeDtypeStruct(symbolic_shape("b"), F32))
    second = export(jnp.sin)(*first.out_avals)
    assert second.in_avals == first.out_avals


def test_a_polymorphic_module_is_marked_for_refinement():
    (b,) = symbolic_shape("b")
    assert "jax.uses_shape_polymorphism = true" in export(double)(ShapeDtypeStruct((b,), F32)).mlir_module()
    assert "jax.uses_shape_polymorphism = false" in export(double)(ShapeDtypeStruct((2,), F32)).mlir_module()


def test_a_static_function_that_calls_a_polymorphic_export_is_marked_for_refinement():
    inner = export(double)(ShapeDtypeStruct(symbolic_shape("b"), F32))
    outer = export(lambda x: inner.call(x) + 1)(ShapeDtypeStruct((3,), F32))
    assert outer.uses_global_constants
    assert "jax.uses_shape_polymorphism = true" in outer.mlir_module()
    np.testing.assert_array_equal(outer.call(np.arange(3, dtype=F32)), [1, 3, 5])


def test_one_module_is_lowered_for_cpu_cuda_and_tpu_at_once():
    exported = export(lambda x: jnp.cumsum(x @ x.T), platforms=("cpu", "cuda", "tpu"))(
        ShapeDtypeStruct(symbolic_shape("b, 4"), F32)
    )
    text = exported.mlir_module()
    assert 'tensor<i32> {jax.global_constant = "_platform_index"}' in text
    x = np.arange(12, dtype=F32).reshape(3, 4)
    np.testing.assert_allclose(exported.call(x), np.cumsum(x @ x.T), rtol=1e-6)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "tpu"])
def test_a_platform_that_is_not_present_can_be_exported_for(platform):
    exported = export(lambda x: jnp.tanh(x).sum(), platforms=[platform])(ShapeDtypeStruct((3,), F32))
    assert exported.platforms == (platform,)


def test_the_default_platform_is_that_of_the_default_backend():
    assert default_export_platform() == "cpu"
    assert export(double)(ShapeDtypeStruct((), F32)).platforms == ("cpu",)


def test_a_platform_that_does_not_exist_is_refused_before_anything_is_traced():
    with pytest.raises(PlatformError, match="there is no lowering platform 'gpu'"):
        export(double, platforms=("gpu",))


@pytest.mark.parametrize("version", [9, 10])
def test_the_calling_convention_version_is_the_one_asked_for(version):
    assert (
        export(double, calling_convention_version=version)(ShapeDtypeStruct((), F32)).calling_convention_version
        == version
    )


@pytest.fixture
def jax_says_calling_convention_9():
    before = jax.config.jax_export_calling_convention_version
    jax.config.update("jax_export_calling_convention_version", 9)
    yield
    jax.config.update("jax_export_calling_convention_version", before)


@pytest.mark.usefixtures("jax_says_calling_convention_9")
def test_the_calling_convention_version_comes_from_jax_configuration_by_default():
    assert export(double)(ShapeDtypeStruct((), F32)).calling_convention_version == 9


@pytest.mark.parametrize("version", [8, 11])
def test_a_calling_convention_version_outside_the_range_is_refused(version):
    with pytest.raises(
        CallingConventionError, match=rf"version {version} is outside the range of supported versions \[9\.\.10\]"
    ):
        export(double, calling_convention_version=version)


def test_the_module_is_written_for_the_stablehlo_version_asked_for():
    spec = ShapeDtypeStruct(symbolic_shape("b"), F32)
    exported = export(double, stablehlo_version="1.9.0")(spec)
    assert exported.stablehlo_version == "1.9.0"
    assert b"StableHLO_v1.9.0" in exported.mlir_module_serialized
    with pytest.raises(StablehloVersionError, match=r"cannot write StableHLO version 99\.0\.0"):
        export(double, stablehlo_version="99.0.0")


@pytest.mark.parametrize("version", [*(".".join(map(str, release)) for release in RELEASES), "2.999"])
def test_the_module_is_written_for_the_tensorflow_asked_for(version):
    exported = export(double, tensorflow_version=version)(ShapeDtypeStruct(symbolic_shape("b"), F32))
    expected = negotiate(tensorflow_reads(version))
    for function in (exported, exported.vjp()):
        assert function.stablehlo_version == expected.stablehlo_version
        assert function.calling_convention_version == expected.calling_convention_version
        assert f"StableHLO_v{expected.stablehlo_version}".encode() in function.mlir_module_serialized


@pytest.mark.parametrize("newest", ["1.10.0", "1.12.1", "1.13.0"])
def test_a_tensorflow_that_reads_more_than_jaxlib_writes_gets_what_is_written(newest, monkeypatch):
    monkeypatch.setattr(portable_artifact, "current_stablehlo_version", lambda: newest)
    exported = export(double, tensorflow_version="2.20")(ShapeDtypeStruct((), F32))
    assert exported.stablehlo_version == min(newest, "1.12.1")
    monkeypatch.setattr(portable_artifact, "month_old_stablehlo_version", lambda: "1.12.1")
    assert export(double)(ShapeDtypeStruct((), F32)).stablehlo_version == min(newest, "1.12.1")


@pytest.mark.parametrize(
    ("options", "error", "reported"),
    [
        (
            {"stablehlo_version": "1.13.8"},
            StablehloVersionError,
            "stablehlo_version='1.13.8' is newer than TensorFlow 2.19 reads, which is up to 1.9.1",
        ),
        (
            {"calling_convention_version": 10},
            CallingConventionError,
            "calling_convention_version=10 is newer than TensorFlow 2.19 reads, which is up to 9",
        ),
    ],
)
def test_what_the_tensorflow_asked_for_does_not_read_is_refused(options, error, reported):
    with pytest.raises(error) as caught:
        export(double, tensorflow_version="2.19", **options)
    [name] = options
    assert str(caught.value) == f"{reported}\n  remedy: leave {name} out, or name a newer TensorFlow"


def test_beside_a_tensorflow_something_older_can_be_asked_for():
    exporter = export(double, tensorflow_version="2.21", stablehlo_version="1.9.0", calling_convention_version=9)
    exported = exporter(ShapeDtypeStruct((), F32))
    assert (exported.stablehlo_version, exported.calling_convention_version) == ("1.9.0", 9)


def test_a_calling_convention_of_jax_configuration_that_is_none_is_refused(monkeypatch):
    monkeypatch.setattr(settings, "default_calling_convention_version", lambda: 11)
    with pytest.raises(CallingConventionError, match="version 11 is outside the range"):
        export(double)


@pytest.mark.parametrize("exporter", [export, functools.partial(export, platforms=["rocm"]), export_for_graph])
@pytest.mark.parametrize(
    ("callback", "named"),
    [
        (lambda x: jax.pure_callback(np.sin, x, x), "jax.pure_callback"),
        (lambda x: jax.experimental.io_callback(np.sin, x, x), "jax.experimental.io_callback"),
        (lambda x: jax.debug.print("{}", x), "jax.debug."),
    ],
)
def test_a_callback_into_python_is_refused(exporter, callback, named):
    def noisy(x):
        return callback(x), x

    with pytest.raises(HostCallbackError, match=rf"'noisy' calls back into Python, by {named}"):
        exporter(noisy)(ShapeDtypeStruct((3,), F32))


def test_an_error_of_a_rule_with_a_class_of_its_own_is_not_taken_for_a_callback():
    class RefusedByRule(ValueError):
        pass

    def refuses(ctx, x):
        raise RefusedByRule("no such table")

    primitive = jax.extend.core.Primitive("table")
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, refuses)

    def looked_up(x):
        jax.debug.print("{}", x)
        return primitive.bind(x)

    with pytest.raises(RefusedByRule, match="no such table"):
        export(looked_up)(ShapeDtypeStruct((3,), F32))


def test_a_reference_that_a_function_takes_or_closes_over_is_refused():
    reference = jax.new_ref(jnp.zeros(3))

    def adds(x):
        return x + reference[...]

    def writes(target, x):
        target[...] = x
        return x

    with pytest.raises(ReferenceRefused, match=r"'adds' closes over a Ref\{.*no state\n  remedy: take the array"):
        export(adds)(ShapeDtypeStruct((3,), F32))
    with pytest.raises(
        ReferenceRefused, match=r"'writes' takes a Ref\{.*\} as args\[0\]: an exported function has no state"
    ):
        export(jax.jit(writes))(reference, ShapeDtypeStruct((3,), F32))


def test_a_reference_that_a_function_makes_is_its_own():
    def total(x):
        sums = jax.new_ref(jnp.zeros(3))
        for row in range(2):
            sums[...] += x[row]
        return sums[...]

    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(export(total)(x).call(x), x.sum(0))


def test_callbacks_are_named_wherever_they_are():
    def body(carry, x):
        jax.debug.print("{}", x)
        jax.experimental.io_callback(print, None, x, ordered=True)
        return carry, jax.lax.cond(x > 0, lambda x: jax.pure_callback(np.sin, x, x), lambda x: x, x)

    with pytest.raises(HostCallbackError) as caught:
        export(lambda x: jax.lax.scan(body, 0.0, x))(ShapeDtypeStruct((3,), F32))
    for name in ("jax.debug.", "jax.experimental.io_callback", "jax.pure_callback"):
        assert name in str(caught.value)


@pytest.fixture
def equinox(tmp_path, monkeypatch):
    """A package with the files of Equinox that are in the stack of a check, and of a module that is called."""
    folder = tmp_path / "site-packages" / "equinox"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from ._errors import error_if\nfrom ._vmap_pmap import filter_vmap\n")
    (folder / "_errors.py").write_text(
        "import jax\ndef error_if(x, wrong):\n    return jax.pure_callback(lambda x, wrong: x, x, x, wrong)\n"
    )
    (folder / "_vmap_pmap.py").write_text("def filter_vmap(function):\n    return lambda x: function(x)\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    for name in ("equinox", "equinox._errors", "equinox._vmap_pmap"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("equinox")
    for name in ("equinox", "equinox._errors", "equinox._vmap_pmap"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_callback_has_the_remedy_for_a_check_of_equinox_if_it_is_one(equinox):
    def prints(x):
        jax.debug.print("{}", x)
        return x

    def checks(x):
        return equinox.error_if(x, x.sum() < 0)

    def remedy(function):
        with pytest.raises(HostCallbackError) as caught:
            export(function)(ShapeDtypeStruct((3,), F32))
        return str(caught.value).split("\n  remedy: ")[1]

    check = (
        "it is a check of Equinox (eqx.error_if): set the environment variable EQX_ON_ERROR=nan before Equinox is "
        "imported; values that fail the check then become NaN"
    )
    assert remedy(equinox.filter_vmap(prints)) == "leave the callback out of the function that is exported"
    assert remedy(equinox.filter_vmap(checks)) == check
    assert remedy(lambda x: checks(prints(x))) == (
        f"{check}; leave the other callbacks out of the function that is exported"
    )


def test_a_check_in_what_a_primitive_is_lowered_to_has_its_remedy_too(equinox):
    """As of a solver of Lineax, whose equation holds no jaxpr."""
    primitive = jax.extend.core.Primitive("solves")
    primitive.def_abstract_eval(lambda x: x)
    checks = mlir.lower_fun(lambda x: equinox.error_if(x, x.sum() < 0), multiple_results=False)
    mlir.register_lowering(primitive, checks)
    for function, is_told in ((equinox.filter_vmap(primitive.bind), True), (primitive.bind, False)):
        with pytest.raises(HostCallbackError) as caught:
            export(function)(ShapeDtypeStruct((3,), F32))
        remedy = str(caught.value).split("\n  remedy: ")[1]
        assert remedy.startswith("leave the callback out of the function that is exported")
        assert ("as in a solver of Lineax, set the environment variable EQX_ON_ERROR=nan before" in remedy) == is_told


def test_operations_of_an_unstable_dialect_are_refused_by_name():
    primitive = jax.extend.core.Primitive("arithmetic")
    primitive.def_abstract_eval(lambda x: x)

    def lower(ctx, x):
        return ir.Operation.create("arith.negf", results=[x.type], operands=[x]).results

    mlir.register_lowering(primitive, lower)
    with pytest.raises(UnstableDialect) as caught:
        export(primitive.bind)(ShapeDtypeStruct((3,), F32))
    assert "no compatibility guarantees:\n  'arith.negf' at jit(bind)/arithmetic, " in str(caught.value)
    assert "stable are builtin, chlo, func, mhlo, sdy, stablehlo" in str(caught.value)


def test_a_custom_call_without_guarantees_is_refused_unless_allowed():
    def calls_out(x):
        return jax.ffi.ffi_call("a_target_of_mine", x)(x)

    spec = ShapeDtypeStruct((3,), F32)
    with pytest.raises(UnstableCustomCall, match="'a_target_of_mine' at "):
        export(calls_out)(spec)
    allowed = [DisabledSafetyCheck.custom_call("a_target_of_mine")]
    assert export(calls_out, disabled_checks=allowed)(spec).disabled_safety_checks == tuple(allowed)


@pytest.mark.parametrize("name", ["_a", "None", "größe", "大小"])
def test_sizes_of_any_name_are_exported_and_read_by_both(name):
    shape = symbolic_shape(f"{name}, 2*{name}", constraints=[f"{name} >= 2"])
    exported = export(lambda x: x * x.shape[0])(ShapeDtypeStruct(shape, F32))
    artifact = exported.serialize()
    assert deserialize(artifact).has_same_function(exported)
    for read in (exported, deserialize(artifact), jax.export.deserialize(artifact)):
        np.testing.assert_array_equal(read.call(np.ones((3, 6), np.float32)), np.full((3, 6), 3))
        with pytest.raises(ValueError, match="Input shapes do not match"):
            read.call(np.ones((3, 5), np.float32))


def test_disabled_checks_of_jax_export_are_ours_in_the_artifact():
    theirs = jax.export.DisabledSafetyCheck

    def calls_out(x):
        return jax.ffi.ffi_call("a_target_of_mine", x)(x)

    given = [theirs.platform(), theirs.custom_call("a_target_of_mine")]
    exported = export(calls_out, disabled_checks=given)(ShapeDtypeStruct((3,), F32))
    own = (DisabledSafetyCheck.platform(), DisabledSafetyCheck.custom_call("a_target_of_mine"))
    assert exported.disabled_safety_checks == deserialize(exported.serialize()).disabled_safety_checks == own
    on_tpu = export(jnp.sin, platforms=["tpu"], disabled_checks=[theirs.platform()])(ShapeDtypeStruct((3,), F32))
    np.testing.assert_allclose(on_tpu.call(np.ones(3, np.float32)), np.sin(np.ones(3)), rtol=1e-6)


def test_source_locations_of_the_user_are_kept():
    assert "test_export.py" in export(double)(ShapeDtypeStruct((2,), F32)).mlir_module()


def test_dimensions_of_two_scopes_among_the_arguments_are_refused():
    (a,), (b,) = symbolic_shape("a"), symbolic_shape("b")
    with pytest.raises(ValueError, match="scope"):
        export(lambda x, y: (x, y))(ShapeDtypeStruct((a,), F32), ShapeDtypeStruct((b,), F32))


@pytest.mark.parametrize("fun", [lambda x, y: x + y, lambda x, y: x @ y.T], ids=["added", "multiplied"])
def test_sizes_of_two_scopes_that_print_alike_are_refused_before_they_meet(fun):
    first, second = symbolic_shape("b, 4"), symbolic_shape("b, 4")
    with pytest.raises(ScopeError) as caught:
        export(fun)(ShapeDtypeStruct(first, F32), ShapeDtypeStruct(second, F32))
    assert "args[0].shape[0] is 'b' in a" in str(caught.value)
    assert "args[1].shape[0] is 'b' in a" in str(caught.value)
    assert "make them in one call of symbolic_shape, or pass the scope of one" in str(caught.value)


def test_dimension_variables_that_no_argument_determines_are_refused():
    a, b = symbolic_shape("a, b")
    with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables \{'a', 'b'\}"):
        export(double)(ShapeDtypeStruct((a + b,), F32))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float8_e4m3fn, jnp.int4, jnp.complex64, jnp.bool_])
def test_every_dtype_of_jax_is_exported(dtype):
    exported = export(lambda x: x)(ShapeDtypeStruct((2,), dtype))
    assert exported.out_avals[0].dtype == dtype


def test_a_random_key_is_an_argument_and_a_result():
    exported = export(lambda key: (jax.random.split(key)[0], jax.random.normal(key)))(jax.random.key(0))
    key, sample = exported.call(jax.random.key(7))
    np.testing.assert_array_equal(sample, jax.random.normal(jax.random.key(7)))
    np.testing.assert_array_equal(jax.random.key_data(key), jax.random.key_data(jax.random.split(jax.random.key(7))[0]))


@pytest.mark.parametrize(("consumer", "composites"), [("1.13.7", False), ("1.17.0", True)])
def test_composites_of_dynamic_shape_are_written_only_for_consumers_that_refine_them(consumer, composites):
    exported = export(jax.lax.erf, stablehlo_version=consumer)(ShapeDtypeStruct(symbolic_shape("b, 4"), F32))
    assert ("chlo.erf" in exported.mlir_module()) == composites
    x = np.linspace(-1, 1, 12, dtype=F32).reshape(3, 4)
    np.testing.assert_allclose(exported.call(x), jax.lax.erf(x), rtol=1e-6)


def test_sizes_that_jax_export_made_are_taken_with_their_constraints():
    scope = jax.export.SymbolicScope(["a >= 2", "c <= 2*a"])
    a, c, d = jax.export.symbolic_shape("a, c, 3*a - mod(b, 2)", scope=scope)
    (b,) = jax.export.symbolic_shape("b", scope=scope)
    specs = [{"x": jax.ShapeDtypeStruct((a, c), jnp.float32)}, jax.ShapeDtypeStruct((b, d), jnp.int32)]

    def fun(tree, y):
        x = tree["x"]
        return jnp.concatenate([x, x]).T, x[:2].sum(), y + y.shape[1]

    exported = export(fun)(*specs)
    assert str(exported.in_avals[0].shape) == "(a, c)"
    assert list(map(str, exported.in_avals[0].shape[0].scope.constraints)) == ["a >= 2", "c <= 2*a"]
    x, y = np.ones((3, 6), np.float32), np.ones((1, 8), np.int32)
    assert [r.tolist() for r in exported.call({"x": x}, y)] == [r.tolist() for r in fun({"x": x}, y)]
    with pytest.raises(ValueError, match="a >= 2"):
        exported.call({"x": x[:1, :2]}, y[:, :2])


def test_sizes_of_jax_export_and_ours_do_not_mix():
    theirs, other = (jax.ShapeDtypeStruct(jax.export.symbolic_shape("a"), jnp.float32) for _ in range(2))
    ours = jax.ShapeDtypeStruct(symbolic_shape("a"), jnp.float32)
    for pair in ((theirs, ours), (theirs, other)):
        with pytest.raises(ScopeError, match=r"several scopes, some of jax.export\n  remedy: make them in one call"):
            export(lambda x, y: (x, y))(*pair)


def test_a_check_of_more_sizes_than_an_assertion_takes_names_the_first():
    batch, *others = symbolic_shape("b, " + ", ".join(f"n{i}" for i in range(60)))
    specs = [ShapeDtypeStruct((batch, size, 2), F32) for size in others]
    exported = export(lambda *xs: sum(x.sum() for x in xs))(*specs)
    arrays = [np.ones((3, n + 1, 2), np.float32) for n in range(60)]
    assert float(exported.call(*arrays)) == sum(x.size for x in arrays)
    assert float(jax.jit(exported.call)(*arrays)) == sum(x.size for x in arrays)
    arrays[40] = np.ones((4, 41, 2), np.float32)
    with pytest.raises(ValueError, match=r"args\[40\]\.shape\[0\]"):
        exported.call(*arrays)


@pytest.mark.parametrize("constraints", [["a == 4"], ["a >= 4", "a <= 4"], ["2*a == 8"], ["mod(a, 5) == 4", "a <= 8"]])
def test_a_size_that_constraints_fix_is_exported_as_that_size(constraints):
    a, b = symbolic_shape("a, a + b", constraints=[*constraints, "b >= a"])
    exported = export(lambda x, y: (x + jnp.ones(4), jnp.concatenate([x, y])))(
        ShapeDtypeStruct((a,), F32), ShapeDtypeStruct((b,), F32)
    )
    again = deserialize(exported.serialize())
    assert [str(aval.shape) for aval in (*again.in_avals, *again.out_avals)] == ["(4,)", "(b + 4,)", "(4,)", "(b + 8,)"]
    four, nine = np.ones(4, np.float32), np.ones(9, np.float32)
    assert again.call(four, nine)[1].shape == (13,)
    with pytest.raises(ValueError, match=r"args\[0\]\.shape\[0\]"):
        again.call(nine, nine)
    with pytest.raises(ValueError, match="constraint b >= a"):
        again.call(four, np.ones(7, np.float32))


def test_a_size_as_an_exponent_is_a_number():
    (d,) = symbolic_shape("d")
    exported = export(lambda x: (2 ** x.shape[0], x.shape[0] ** x.shape[0]))(ShapeDtypeStruct((d,), F32))
    assert [int(power) for power in exported.call(np.ones(5, np.float32))] == [2**5, 5**5]


def test_sizes_are_computed_in_32_bits_without_wrapping():
    (b,) = symbolic_shape("b")

    def sizes(x):
        n = x.shape[0]
        return jnp.stack([jnp.asarray(size) for size in of_size(n)])

    def of_size(n):
        return [
            (n * 70_000 + 1) % 100_000,
            -n // 32768,
            n * 9 // 7,
            -n // 1000 % 1_100_000,
            n * 2_000_000_000 // 2_100_000_000,
        ]

    exported = export(jax.jit(sizes))(ShapeDtypeStruct((b,), np.int8))
    for n in [1, 32_769, 200_000]:
        assert exported.call(np.zeros(n, np.int8)).tolist() == of_size(n)


def test_a_size_computed_with_a_number_of_more_than_32_bits_is_refused():
    (b,) = symbolic_shape("b")
    function = jax.jit(lambda x: jnp.asarray(x.shape[0] // 2**31 // 2))
    with pytest.raises(OverflowError, match="2147483648, which int32, the dtype of sizes in a program, does not hold"):
        export(function)(ShapeDtypeStruct((b,), np.int8))
    with jax.enable_x64(True):
        assert export(function)(ShapeDtypeStruct((b,), np.int8)).call(np.zeros(3, np.int8)) == 0
