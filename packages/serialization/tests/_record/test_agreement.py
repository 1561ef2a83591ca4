"""A record and the module that it is stored with: what differs is refused, and it is asked once."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtf.serialization import ArtifactError, DisabledSafetyCheck, deserialize, export
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import append_trailer, split_trailer
from jaxtf.serialization._artifact.writer import write_payload
from jaxtf.serialization._record import exported as exported_module
from jaxtf.shapepoly import symbolic_shape

SPEC = jax.ShapeDtypeStruct((3,), jnp.float32)


def signed(blob, **fields):
    """The artifact with other fields in its record, and a digest that fits."""
    split = split_trailer(blob)
    payload = write_payload(dataclasses.replace(read_payload(split.payload), **fields))
    append_trailer(payload, json.loads(json.dumps(split.notes)))
    return payload


def module_of(fun, *specs, **options):
    return export(fun, **options)(*specs).mlir_module_serialized


WHERE = "the module of 'sin' is not the one that its record describes: "


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"mlir_module_serialized": module_of(jnp.sin, jax.ShapeDtypeStruct((3,), jnp.int8))},
            "args[0] is float32[3] in the record, and int8[3] in the module",
        ),
        (
            {"mlir_module_serialized": module_of(jnp.sin, jax.ShapeDtypeStruct((4,), jnp.float32))},
            "args[0] is float32[3] in the record, and float32[4] in the module",
        ),
        (
            {"mlir_module_serialized": module_of(jnp.add, SPEC, SPEC)},
            "'main' has 2 arguments, expected 1 arrays",
        ),
        ({"platforms": ("cpu", "cuda")}, "'main' has 1 arguments, expected the platform index, 1 arrays"),
    ],
)
def test_what_differs_is_refused_by_its_place(fields, message):
    changed = deserialize(signed(export(jnp.sin)(SPEC).serialize(), **fields))
    for use in (lambda: changed.call(np.ones(3, np.float32)), lambda: changed.with_stablehlo_version("1.9.0")):
        with pytest.raises(ArtifactError) as error:
            use()
        assert str(error.value).startswith(WHERE + message)


def test_another_function_s_vjp_is_refused_by_its_place():
    blob = export(jnp.sin)(SPEC).serialize(vjp_order=1)
    other = read_payload(split_trailer(export(jnp.sum)(SPEC).serialize(vjp_order=1)).payload).vjp
    with pytest.raises(ArtifactError) as error:
        jax.grad(lambda x: deserialize(signed(blob, vjp=other)).call(x).sum())(np.ones(3, np.float32))
    assert str(error.value).startswith(
        "the artifact has a VJP that is not of 'sin': args[1] is float32[], expected float32[3]"
    )


@pytest.mark.parametrize("target", ["ALL", "xla_ffi_python_cpu_callback"])
def test_an_artifact_cannot_vouch_for_a_callback(target):
    def calls_back(x):
        return jax.ffi.ffi_call("xla_ffi_python_cpu_callback", SPEC)(x, index=np.uint64(7))

    exported = export(calls_back, disabled_checks=[DisabledSafetyCheck.custom_call(target)])(SPEC)
    loaded = deserialize(exported.serialize())
    with pytest.raises(ArtifactError) as error:
        loaded.call(np.ones(3, np.float32))
    assert str(error.value) == (
        "'calls_back' calls back into the Python process that exported it, which is another one: "
        "xla_ffi_python_cpu_callback\n  remedy: leave the callback out of what is exported"
    )


def test_the_constraints_of_an_artifact_are_bounded_together():
    split = split_trailer(export(jnp.sin)(SPEC).serialize())
    payload = bytearray(split.payload)
    append_trailer(payload, {**split.notes, "constraints": [f"(b+d+{index})^60 >= 1" for index in range(60)]})
    with pytest.raises(ArtifactError, match="constraints that cannot be read"):
        deserialize(payload)


@pytest.mark.slow(1)
@pytest.mark.parametrize(
    ("constraints", "size"),
    [
        ([], "(b+d+{index})^60"),
        ([], "floordiv((a+b+c+{index})^25, (a+b+{index})^8)"),
        ([f"v{index} >= 2*v{index + 1}" for index in range(199)], "max(v{index}, v{index}9)"),
        ([f"v{index} == 2*v{index + 1} + v{index * 11 % 199}" for index in range(150)], "a"),
    ],
    ids=["powers", "divisions", "decisions", "constraints"],
)
def test_the_sizes_of_an_artifact_are_bounded_together(constraints, size):
    table = read_payload(split_trailer(export(jnp.sin)(SPEC).serialize()).payload)
    texts = tuple(size.format(index=index) for index in range(1, 60))
    aval = dataclasses.replace(table.unique_avals[0], shape=texts)
    payload = write_payload(dataclasses.replace(table, unique_avals=(aval, *table.unique_avals[1:])))
    notes = split_trailer(export(jnp.sin)(SPEC).serialize()).notes
    append_trailer(payload, {**notes, "constraints": constraints})
    with pytest.raises(ArtifactError, match=r"that cannot be read.*(take too many steps|more than 5000 terms)"):
        deserialize(payload)


def test_a_module_is_checked_once_and_a_fresh_one_never(monkeypatch):
    checked = []
    monkeypatch.setattr(exported_module, "check_agreement", checked.append)
    fresh = export(jnp.sin)(SPEC)
    fresh.call(np.ones(3, np.float32))
    assert not checked
    loaded = deserialize(fresh.serialize())
    assert not checked
    for _ in range(3):
        loaded.call(np.ones(3, np.float32))
    jax.jit(loaded.call)(np.ones(3, np.float32))
    loaded.check_module()
    assert checked == [loaded]


@pytest.mark.parametrize(
    ("constraints", "sizes", "others"),
    [
        (["a == 4"], (4, 3), (5, 3)),
        (["a >= 4", "a <= 4"], (4, 3), (3, 3)),
        (["a == 2", "b == a"], (2, 2), (2, 3)),
        (["a == 2*b"], (4, 2), (5, 2)),
        (["floordiv(a, 2) == b"], (5, 2), (6, 2)),
    ],
)
@pytest.mark.parametrize("vjp_order", [0, 1])
def test_a_size_that_constraints_fix_may_be_open_in_the_module(constraints, sizes, others, vjp_order):
    """So releases wrote it to which `a` with `a == 4` was a variable like any other: the bytes are the same."""
    spec = jax.ShapeDtypeStruct(symbolic_shape("a, b"), jnp.float32)
    blob = export(lambda x: jnp.sin(x) * x.shape[0])(spec).serialize(vjp_order=vjp_order)
    split = split_trailer(blob)
    older = bytearray(split.payload)
    append_trailer(older, {**split.notes, "constraints": constraints})
    read = deserialize(older)
    x = np.ones(sizes, np.float32)
    np.testing.assert_allclose(read.call(x), np.sin(x) * sizes[0], rtol=1e-6)
    if vjp_order:
        np.testing.assert_allclose(read.vjp().call(x, x)[0], np.cos(x) * sizes[0], rtol=1e-6)
    with pytest.raises(ValueError, match=r"[Ss]hape"):
        read.call(np.ones(others, np.float32))


def test_a_size_that_the_record_knows_is_not_open_in_a_module_that_is_not_refined():
    symbolic = jax.ShapeDtypeStruct(symbolic_shape("a"), jnp.float32)
    blob = signed(
        export(jnp.sin)(SPEC).serialize(),
        mlir_module_serialized=module_of(jnp.sin, symbolic),
        uses_global_constants=False,
    )
    with pytest.raises(
        ArtifactError, match=r"args\[0\] is float32\[3\] in the record, and float32\[\?\] in the module"
    ):
        deserialize(blob).call(np.ones(3, np.float32))
