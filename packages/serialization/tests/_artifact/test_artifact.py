"""Writing an exported function to bytes, and reading it again."""

import copy
import json
from collections import OrderedDict
from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import export as jax_export

from jaxtf.serialization import (
    ArgumentMismatch,
    ArtifactError,
    CallingConventionError,
    DictionaryKeyError,
    DisabledSafetyCheck,
    Effect,
    Exported,
    SerializationError,
    StablehloVersionError,
    VersionError,
    VjpUnavailable,
    deserialize,
    export,
    negotiate,
    register_namedtuple_serialization,
    tensorflow_reads,
)
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import append_trailer, split_trailer
from jaxtf.serialization._artifact.writer import write_payload
from jaxtf.shapepoly import SymbolicScope, symbolic_shape


class Pair(NamedTuple):
    first: object
    second: object


register_namedtuple_serialization(Pair, serialized_name="test_artifact.Pair")
# The same name in JAX's own registry: `jax.export` reads our artifact.
jax_export.register_namedtuple_serialization(Pair, serialized_name="test_artifact.Pair")


def spec(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))


def sizes(text, *constraints):
    return symbolic_shape(text, scope=SymbolicScope(constraints))


def polymorphic():
    """A function of a pytree under constraints, for three platforms."""
    b, d = sizes("b, d", "b >= 2", "b <= 100", "mod(d, 2) == 0")

    def dense(parameters, x, *, mask):
        return {"y": jnp.tanh(x @ parameters["w"]) * mask, "total": x.sum()}

    exporter = export(dense, platforms=("cpu", "cuda", "tpu"), disabled_checks=[DisabledSafetyCheck.platform()])
    return exporter({"w": spec(d, 3)}, spec(b, d), mask=spec(b, 1))


def several_dtypes():
    def several(x, unused, keys, n):
        return Pair([x.astype(jnp.int8), None], (jax.random.uniform(keys, (2,)), n + 1))

    key = jax.eval_shape(lambda: jax.random.key(0))
    return export(several)(spec(3, dtype="bfloat16"), spec(2, dtype="int4"), key, 1)


def nothing():
    return export(lambda: ())()


def integer_keys():
    return export(lambda tree: {1: tree[10], 2: tree[9]})({10: spec(2), 9: spec(3)})


def ordered():
    return export(lambda x: OrderedDict(b=x, a=x))(spec(2))


def linalg():
    return export(lambda x: (jnp.linalg.eigh(x), jnp.linalg.slogdet(x)))(spec(3, 3))


def no_assertions():
    checks = [DisabledSafetyCheck.shape_assertions(), DisabledSafetyCheck.custom_call("mine")]
    return export(jnp.sin, disabled_checks=checks)(spec(*sizes("a, 2*a")))


EXPORTS = [polymorphic, several_dtypes, nothing, integer_keys, ordered, linalg, no_assertions]


@pytest.fixture(scope="module", params=EXPORTS, ids=lambda make: make.__name__)
def exported(request):
    return request.param()


@pytest.mark.parametrize("vjp_order", [0, 1, 2])
def test_what_is_read_equals_what_was_written(exported, vjp_order):
    read = deserialize(exported.serialize(vjp_order))
    for _ in range(vjp_order):
        assert read.has_same_function(exported)
        assert hash(read) == hash(exported)
        assert read.producer == exported.producer
        assert read.in_tree == exported.in_tree
        assert read.out_tree == exported.out_tree
        read, exported = read.vjp(), exported.vjp()
    assert read.has_same_function(exported)
    assert not read.has_vjp()


def test_equal_exports_give_equal_bytes():
    # From one line: a module knows where it was traced.
    one, other = (polymorphic().serialize(1) for _ in range(2))
    assert one == other


def test_what_was_read_can_be_written_again(exported):
    once = exported.serialize(1)
    assert deserialize(once).serialize(1) == once


def test_constraints_come_back():
    read = deserialize(polymorphic().serialize())
    b, d = read.in_avals[2].shape[0], read.in_avals[0].shape[0]
    assert [constraint.text for constraint in read.scope.constraints] == ["b >= 2", "b <= 100", "mod(d, 2) == 0"]
    assert b >= 2
    assert b <= 100
    assert d % 2 == 0


def test_records_that_differ_in_one_field_are_not_equal():
    one = polymorphic()
    for name in one.__dataclass_fields__:
        if name in ("producer", "_make_vjp", "_is_read"):
            continue
        other = object.__new__(type(one))  # a copy of a record is the record itself
        other.__dict__.update(one.__dict__)
        value = getattr(one, name)
        if name.endswith("avals"):
            changed = tuple(replace(aval, weak_type=not aval.weak_type) for aval in value)
        else:
            changed = not value if isinstance(value, bool) else ("changed", value)
        object.__setattr__(other, name, changed)
        other.__dict__.pop("_compared", None)
        assert not one.has_same_function(other), name
        assert one != other, name


def test_constraints_count_for_equality():
    def under(*constraints):
        return export(jnp.sin)(spec(*sizes("a, b", *constraints)))

    one, same, other = (under(text) for text in ("a >= b", "a >= b", "b >= a"))
    assert one.has_same_function(same)
    assert not one.has_same_function(other)


def ones(*shape):
    return np.ones(shape, np.float32)


ARGUMENTS = {
    polymorphic: (
        ({"w": np.ones((4, 3), np.float32)}, np.ones((5, 4), np.float32)),
        {"mask": np.ones((5, 1), np.float32)},
    ),
    integer_keys: (({10: np.ones(2, np.float32), 9: np.zeros(3, np.float32)},), {}),
    linalg: ((np.diag(np.arange(1.0, 4.0, dtype=np.float32)),), {}),
}


@pytest.mark.parametrize("make", ARGUMENTS, ids=lambda make: make.__name__)
def test_what_was_read_runs(make):
    exported = make()
    read = deserialize(exported.serialize())
    args, kwargs = ARGUMENTS[make]
    expected, found = exported.call(*args, **kwargs), read.call(*args, **kwargs)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_what_was_read_can_be_differentiated_as_often_as_was_written():
    read = deserialize(export(lambda x: jnp.sin(x) * x)(spec()).serialize(2))
    reference = jax.grad(jax.grad(lambda x: jnp.sin(x) * x))
    np.testing.assert_allclose(jax.grad(jax.grad(read.call))(0.5), reference(0.5), rtol=1e-6)
    with pytest.raises(VjpUnavailable):
        jax.grad(jax.grad(jax.grad(read.call)))(0.5)


def test_orders_that_were_not_read_cannot_be_written():
    read = deserialize(export(jnp.sin)(spec()).serialize(1))
    with pytest.raises(VjpUnavailable) as caught:
        read.serialize(3)
    assert str(caught.value).startswith(
        "'sin' cannot be written with VJPs up to order 3: it has none of order 2, because it was read from an artifact "
        "written with vjp_order=1\n"
    )


@pytest.mark.parametrize("order", [-1, True, 1.0, None])
def test_an_order_is_an_integer(order):
    with pytest.raises(SerializationError, match=r"vjp_order must be an integer, at least 0; found"):
        export(jnp.sin)(spec()).serialize(order)


# With jax.export


@pytest.mark.parametrize(
    "make", [polymorphic, several_dtypes, nothing, ordered, no_assertions], ids=lambda m: m.__name__
)
def test_jax_export_reads_ours(make):
    exported = make()
    theirs = jax_export.deserialize(exported.serialize(1))
    assert theirs.in_tree == exported.in_tree
    assert theirs.out_tree == exported.out_tree
    for aval, found in zip(exported.in_avals + exported.out_avals, theirs.in_avals + theirs.out_avals, strict=True):
        assert str(aval) == f"{found.dtype.name}[{','.join(map(str, found.shape))}]"
    assert theirs.platforms == exported.platforms
    assert theirs.mlir_module_serialized == exported.mlir_module_serialized
    assert theirs.module_kept_var_idx == exported.module_kept_var_idx
    assert theirs.nr_devices == exported.nr_devices
    assert theirs.has_vjp()


def test_jax_export_runs_ours():
    args, kwargs = ARGUMENTS[polymorphic]
    exported = polymorphic()
    theirs = jax_export.deserialize(exported.serialize(1))
    jax.tree.map(np.testing.assert_array_equal, theirs.call(*args, **kwargs), exported.call(*args, **kwargs))

    def loss(call):
        return lambda parameters: call(parameters, *args[1:], **kwargs)["y"].sum()

    jax.tree.map(
        np.testing.assert_array_equal, jax.grad(loss(theirs.call))(args[0]), jax.grad(loss(exported.call))(args[0])
    )


def test_jax_export_does_not_mistake_integer_keys_for_strings():
    with pytest.raises(ValueError, match=r"unregistered type `jaxtf.dict`"):
        jax_export.deserialize(integer_keys().serialize())


def theirs_polymorphic():
    b, d = jax_export.symbolic_shape("b, 2*d")
    function = jax.jit(lambda x, y: Pair(x @ y, {"sum": x.sum()}))
    return jax_export.export(function, platforms=("cpu", "tpu"))(spec(3, b), spec(b, d))


def theirs_static():
    return jax_export.export(jax.jit(lambda x, *, y: (x, [y])))(spec(3), y=spec(2, dtype="int8"))


@pytest.mark.parametrize("make", [theirs_polymorphic, theirs_static], ids=lambda make: make.__name__)
def test_we_read_theirs(make):
    theirs = make()
    read = deserialize(theirs.serialize(vjp_order=1))
    assert isinstance(read, Exported)
    assert read.in_tree == theirs.in_tree
    assert read.out_tree == theirs.out_tree
    for aval, found in zip(read.in_avals + read.out_avals, theirs.in_avals + theirs.out_avals, strict=True):
        assert str(aval) == f"{found.dtype.name}[{','.join(map(str, found.shape))}]"
    assert read.platforms == theirs.platforms
    assert read.mlir_module_serialized == theirs.mlir_module_serialized
    assert f"StableHLO_v{read.stablehlo_version}".encode() in read.mlir_module_serialized
    assert read.vjp().fun_name == theirs.vjp().fun_name
    assert deserialize(read.serialize(1)) == read


def test_we_run_theirs():
    theirs = theirs_polymorphic()
    read = deserialize(theirs.serialize(vjp_order=1))
    x, y = np.ones((3, 4), np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
    jax.tree.map(np.testing.assert_array_equal, read.call(x, y), theirs.call(x, y))
    gradient = jax.grad(lambda x: read.call(x, y).first.sum())(x)
    np.testing.assert_array_equal(gradient, jax.grad(lambda x: theirs.call(x, y).first.sum())(x))


# Older formats


@pytest.mark.parametrize("format_version", range(2, 13))
def test_every_format_is_read_again(format_version):
    exported = export(lambda x: {"y": x @ x.T})(spec(*sizes("b, c", "b >= c")))
    blob = exported.serialize(1, format_version=format_version)
    assert deserialize(blob).has_same_function(exported)
    assert (
        read_payload(split_trailer(blob).payload).serialization_version
        == {
            **dict.fromkeys(range(2, 5), 2),
            **dict.fromkeys(range(5, 12), 3),
            12: 12,
        }[format_version]
    )
    if format_version >= 5:  # JAX reads no older ones any more
        assert jax_export.deserialize(blob).fun_name == exported.fun_name


@pytest.mark.parametrize(("make", "needed"), [(ordered, 3), (several_dtypes, 4)], ids=["OrderedDict", "random key"])
def test_what_an_older_format_cannot_hold_is_refused(make, needed):
    exported = make()
    exported.serialize(format_version=needed)
    with pytest.raises(SerializationError) as caught:
        exported.serialize(format_version=needed - 1)
    assert f"which came with format {needed}\n  remedy: leave format_version out, or give {needed}" in str(caught.value)


@pytest.mark.parametrize("format_version", [1, 13, True, "12"])
def test_a_format_outside_the_range_is_refused(format_version):
    with pytest.raises(VersionError, match=r"artifacts are written in formats 2 to 12; asked for"):
        export(jnp.sin)(spec()).serialize(format_version=format_version)


# What cannot be written


def test_keys_that_are_no_strings_or_integers_are_refused():
    with pytest.raises(DictionaryKeyError, match=r"found the key \(1, 2\) of type tuple"):
        export(lambda x: {(1, 2): x})(spec()).serialize()


def test_more_arguments_than_can_be_numbered_are_refused():
    exported = copy.copy(export(jnp.sin)(spec()))
    object.__setattr__(exported, "module_kept_var_idx", (65_536,))
    object.__setattr__(exported, "in_names", ("args[0]",) * 65_537)
    with pytest.raises(SerializationError, match=r"uses its flat argument number 65536 \(args\[0\]\)"):
        exported.serialize()


# Wrong bytes


def rewritten(change, notes_change=lambda notes: None):
    """An artifact whose table was changed, with a digest that fits."""
    split = split_trailer(polymorphic().serialize(1))
    table = read_payload(split.payload)
    payload = write_payload(change(table))
    notes = json.loads(json.dumps(split.notes))
    notes_change(notes)
    append_trailer(payload, notes)
    return payload


def replaced(**fields):
    def change(table):
        return type(table)(**{**{name: getattr(table, name) for name in table.__dataclass_fields__}, **fields})

    return change


def test_rewriting_without_a_change_gives_an_artifact():
    assert deserialize(rewritten(lambda table: table)).fun_name == "dense"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mlir_module_serialized": None}, "the artifact lacks the module"),
        ({"function_name": None}, "the artifact lacks the name of the function"),
        ({"in_tree": None}, "the artifact lacks the structure of its arguments"),
        ({"platforms": ()}, "the artifact names no platform"),
        ({"nr_devices": 0}, "the artifact is for 0 devices"),
        ({"module_kept_var_idx": (0, 0)}, "must ascend and be less than 3; found (0, 0)"),
        ({"module_kept_var_idx": (3,)}, "must ascend and be less than 3; found (3,)"),
        ({"in_avals_idxs": (0, 99, 0)}, "the artifact refers to number 99 of"),
        ({"in_avals_idxs": (0, 0)}, "the artifact is inconsistent: 3 arguments expected, 2 found"),
        ({"in_shardings_idxs": (1, 0, 0)}, "the artifact refers to number 1 of 1 shardings"),
        ({"out_shardings_idxs": (0,)}, "2 shardings of results expected, 1 found"),
    ],
)
def test_a_table_that_does_not_fit_together_is_refused(fields, message):
    with pytest.raises(ArtifactError) as caught:
        deserialize(rewritten(replaced(**fields)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"serialization_version": 13}, "is of format 13, written by jaxtf-serialization 0.1.0, with JAX "),
        ({"serialization_version": 1}, "this release reads formats 2 to 12"),
        ({"calling_convention_version": 8}, "of calling convention version 8, written by"),
        (
            {"calling_convention_version": 11},
            "this release reads 9 to 10\n  remedy: install a newer ",
        ),
    ],
)
def test_versions_outside_the_range_are_refused(fields, message):
    with pytest.raises(VersionError) as caught:
        deserialize(rewritten(replaced(**fields)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (["a >="], "the artifact has constraints that cannot be read: syntax error"),
        (["b >= 2", "b <= 1"], "contradict each other"),
    ],
)
def test_constraints_that_cannot_be_read_are_refused(constraints, message):
    with pytest.raises(ArtifactError) as caught:
        deserialize(rewritten(lambda table: table, lambda notes: notes.update(constraints=constraints)))
    assert message in str(caught.value)


@pytest.mark.parametrize("size", ["", "a,b", "a+", "...", "_", "-1", "a // 0", "(" * 200])
def test_sizes_that_cannot_be_read_are_refused(size):
    def change(table):
        avals = (replaced(shape=(size,))(table.unique_avals[0]), *table.unique_avals[1:])
        return replaced(unique_avals=avals)(table)

    with pytest.raises(ArtifactError, match=r"^the artifact has (a|the) size"):
        deserialize(rewritten(change))


def test_notes_that_do_not_fit_are_refused():
    with pytest.raises(ArtifactError, match=r"3 paths in its notes expected, 1 found"):
        deserialize(rewritten(lambda table: table, lambda notes: notes["functions"][0].update(arguments=["x"])))
    with pytest.raises(ArtifactError, match=r"has a VJP of order 1, which its notes do not mention"):
        deserialize(rewritten(lambda table: table, lambda notes: notes["functions"].pop())).vjp()


def test_an_artifact_without_its_end_is_refused():
    blob = polymorphic().serialize()
    with pytest.raises(ArtifactError, match=r"the end of the artifact is missing: jaxtf-serialization 0.1.0 wrote it"):
        deserialize(blob[:-1])


@pytest.mark.parametrize("what", [None, 3])
def test_what_no_artifact_is_read_from_is_refused(what):
    with pytest.raises(ArtifactError, match="an artifact is read from a path, a file or bytes, found "):
        deserialize(what)


@pytest.mark.parametrize("blob", [b"", b"\0", b"not an artifact", bytes(1000)])
def test_foreign_bytes_are_refused(blob):
    with pytest.raises(ArtifactError):
        deserialize(blob)


ARTIFACT = polymorphic().serialize(1)


@settings(max_examples=300)
@given(st.integers(0, len(ARTIFACT) - 1), st.integers(0, 7))
def test_any_flipped_bit_of_an_artifact_of_ours_is_noticed(position, bit):
    damaged = bytearray(ARTIFACT)
    damaged[position] ^= 1 << bit
    with pytest.raises((ArtifactError, VersionError)):
        deserialize(damaged)


# Shapes and StableHLO versions


def test_shapes_are_checked_without_jax():
    read = deserialize(polymorphic().serialize())
    assert read.in_names == ("args[0]['w']", "args[1]", "kwargs['mask']")
    shapes = read.check_shapes((4, 3), (5, 4), (5, 1))
    assert shapes.variables == {"b": 5, "d": 4}
    assert dict(zip(read.out_names, shapes.results, strict=True)) == {"result['total']": (), "result['y']": (5, 3)}


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(4, 3)], "3 shapes expected, one for each of args[0]['w'], args[1], kwargs['mask']; found 1"),
        ([(4, 3), (5,), (5, 1)], "Rank mismatch for args[1]: expected (b, d) and found (5,)"),
        (
            [(4, 2), (5, 4), (5, 1)],
            "Shape mismatch for args[0]['w'].shape[1] (expected same constant): expected (d,",
        ),
        ([(4, 3), (5, 4), (6, 1)], "Found inconsistency between dimension size kwargs['mask'].shape[0] (= 6)"),
        ([(4, 3), (1, 4), (1, 1)], "b >= 2"),
        (
            [np.ones((4, 3)), (5, 4), (5, 1)],
            "a shape expected for args[0]['w'], a sequence of integers such as (3, 4); found an array: pass its shape, "
            "(4, 3)",
        ),
        ([(4, 3), 5, (5, 1)], "a shape expected for args[1], a sequence of integers such as (3, 4); found 5"),
        ([(4, 3), (5, None), (5, 1)], "such as (3, 4); found (5, None)"),
    ],
)
def test_shapes_that_do_not_fit_are_reported(shapes, message):
    with pytest.raises(ArgumentMismatch) as caught:
        deserialize(polymorphic().serialize()).check_shapes(*shapes)
    assert message in str(caught.value)


def test_a_module_can_be_written_for_another_stablehlo_version():
    read = deserialize(polymorphic().serialize(1))
    older = read.with_stablehlo_version("1.1.0")
    assert older.stablehlo_version == older.vjp().stablehlo_version == "1.1.0"
    assert b"StableHLO_v1.1.0" in older.mlir_module_serialized
    assert deserialize(older.serialize(1)) == older != read
    args, kwargs = ARGUMENTS[polymorphic]
    jax.tree.map(np.testing.assert_array_equal, older.call(*args, **kwargs), read.call(*args, **kwargs))


@pytest.mark.parametrize("version", ["2.19", "2.21", "2.999"])
def test_a_module_can_be_written_for_another_tensorflow(version):
    read = deserialize(polymorphic().serialize(1))
    written = read.with_tensorflow_version(version)
    expected = negotiate(tensorflow_reads(version)).stablehlo_version
    assert written.stablehlo_version == written.vjp().stablehlo_version == expected
    assert f"StableHLO_v{expected}".encode() in written.mlir_module_serialized
    args, kwargs = ARGUMENTS[polymorphic]
    jax.tree.map(np.testing.assert_array_equal, written.call(*args, **kwargs), read.call(*args, **kwargs))


def test_a_calling_convention_that_the_tensorflow_does_not_read_is_refused_for_several_devices():
    several = replace(polymorphic(), calling_convention_version=10, nr_devices=2)
    with pytest.raises(CallingConventionError) as caught:
        several.with_tensorflow_version("2.19")
    assert str(caught.value) == (
        f"'{several.fun_name}', for 2 devices, is exported in calling convention version 10; TensorFlow 2.19 reads up "
        "to 9\n  remedy: export it again with tensorflow_version='2.19'"
    )
    assert several.with_tensorflow_version("2.20").stablehlo_version == "1.12.1"


def test_an_operation_that_the_version_does_not_have_is_named():
    exported = export(lambda x: jnp.sort(x, axis=0))(spec(*sizes("b, 4"))).vjp()
    with pytest.raises(StablehloVersionError) as caught:
        exported.with_stablehlo_version("1.0.0")
    assert str(caught.value).startswith("StableHLO 1.0.0 has no form for the operation vhlo.scatter_v2 at ")
    assert len(str(caught.value)) < 300


# Generated exports

SIZES = st.sampled_from(["1", "3", "b", "c", "2*b", "b + c", "floordiv(b, 2) + 1", "max(b, c)", "mod(c, 3) + 1", "b*c"])
DTYPES = ("bool", "int8", "uint32", "int32", "float16", "float32", "bfloat16", "float8_e4m3fn", "int4", "complex64")
CONSTRAINTS = ["b >= c", "b >= 2", "mod(b, 2) == 0", "c <= 8", "2*b >= c + 1"]
arrays = st.tuples(st.lists(SIZES, max_size=3), st.sampled_from(DTYPES))
structures = st.recursive(
    arrays.map(lambda array: ("array", *array)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
        st.dictionaries(st.integers(-3, 12), inner, max_size=2),
        st.builds(Pair, inner, st.none()),
    ),
    max_leaves=4,
)


def is_array(value):
    return isinstance(value, tuple) and value[:1] == ("array",)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    structure=structures,
    constraints=st.lists(st.sampled_from(CONSTRAINTS), max_size=3, unique=True),
    platforms=st.lists(st.sampled_from(["cpu", "cuda", "tpu"]), min_size=1, max_size=3, unique=True),
    convention=st.sampled_from([9, 10]),
    kept=st.booleans(),
)
def test_what_is_read_equals_what_was_written_for_generated_exports(
    structure, constraints, platforms, convention, kept
):
    scope = SymbolicScope(constraints)
    b, c = symbolic_shape("b, c", scope=scope)

    def array(described):
        _, shape, dtype = described
        return jax.ShapeDtypeStruct(symbolic_shape(",".join(shape) or "()", scope=scope), jnp.dtype(dtype))

    specs = jax.tree.map(array, structure, is_leaf=is_array)
    exporter = export(
        jax.jit(lambda sizes, tree: (tree, sizes.sum()), keep_unused=kept),
        platforms=platforms,
        calling_convention_version=convention,
        disabled_checks=[DisabledSafetyCheck.platform()] if kept else [],
    )
    exported = exporter(jax.ShapeDtypeStruct((b, c), jnp.float32), specs)
    read = deserialize(exported.serialize(1))
    assert read.has_same_function(exported)
    assert read.vjp().has_same_function(exported.vjp())
    assert read.in_tree == exported.in_tree
    assert deserialize(read.serialize(1)).has_same_function(exported)


# Effects


class Named(jax._src.effects.Effect):
    def __init__(self, name):
        self.name = name

    def __eq__(self, other):
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


class Forgetful(jax._src.effects.Effect):
    pass


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        (Named("log"), "Named must have a nullary constructor to be serializable; calling it raised TypeError"),
        (Forgetful(), "Forgetful must have a nullary class constructor that produces an equal effect object"),
    ],
)
def test_an_effect_that_cannot_be_made_again_is_refused_by_name(effect, message):
    exported = copy.copy(export(jnp.sin)(spec()))
    object.__setattr__(exported, "unordered_effects", (Effect(str(type(effect)), effect),))
    with pytest.raises(SerializationError) as caught:
        exported.serialize()
    assert message in str(caught.value)


@pytest.mark.parametrize("format_version", [6, 8, 9, 10, 11, 12])
def test_of_a_mesh_older_formats_leave_out_the_device_alone(format_version):
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,), devices=jax.devices()[:1])
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x", None))
    exported = export(jnp.sin)(jax.ShapeDtypeStruct((8, 4), jnp.float32, sharding=sharding))
    read = deserialize(exported.serialize(format_version=format_version))
    device = exported.in_shardings[0].mesh.device
    assert device.platform is not None
    kept = replace(device, platform=device.platform if format_version >= 11 else None)
    kept = kept if format_version >= 8 else None

    def written(shardings):
        return tuple(each and replace(each, mesh=replace(each.mesh, device=kept)) for each in shardings)

    expected = replace(
        exported, in_shardings=written(exported.in_shardings), out_shardings=written(exported.out_shardings)
    )
    assert read.has_same_function(expected)
    np.testing.assert_array_equal(read.call(np.ones((8, 4), np.float32)), exported.call(np.ones((8, 4), np.float32)))
