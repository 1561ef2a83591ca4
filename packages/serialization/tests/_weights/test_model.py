"""A program with its weights: what is written comes back, mapped and shared, and what is damaged is refused."""

import array
import dataclasses
import gc
import hashlib
import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from jaxtf.serialization import (
    ArgumentMismatch,
    ArtifactError,
    ExportedModel,
    SerializationError,
    VersionError,
    VjpUnavailable,
    describe,
    deserialize,
    export,
    export_model,
    load,
    save,
)
from jaxtf.serialization._cli.program import main
from jaxtf.serialization._container import header as header_module
from jaxtf.serialization._container.manifest import texts_of
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._container.source import opened
from jaxtf.serialization._record.avals import dtype_name
from jaxtf.serialization._record.kinds import DTYPES
from jaxtf.shapepoly import symbolic_shape

needs_safetensors = pytest.mark.skipif(
    importlib.util.find_spec("safetensors") is None, reason="the authority on the format"
)

DTYPES_OF_WEIGHTS = [name for name in DTYPES if name != "float0" and not name.startswith("key<")]


def affine(params, x):
    return x @ params["dense"]["kernel"] * params["scale"] + params["dense"]["bias"]


def weights(seed=0):
    source = np.random.default_rng(seed)
    kernel, bias = source.normal(size=(3, 2)).astype(np.float32), source.normal(size=2).astype(np.float32)
    return {"dense": {"kernel": kernel, "bias": bias}, "scale": np.float32(2)}


@pytest.fixture(scope="module")
def exported():
    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 3"), jnp.float32)
    return export(affine)(weights(), spec)


@pytest.fixture
def file(tmp_path, exported):
    save(tmp_path / "model.jaxtf", exported, weights(), vjp_order=1, metadata={"license": "Apache-2.0"})
    return tmp_path / "model.jaxtf"


X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_what_was_saved_is_called_with_its_weights(file, exported):
    model = load(file)
    assert model.exported.has_same_function(exported)
    assert model.metadata == {"license": "Apache-2.0"}
    np.testing.assert_array_equal(model.call(X), exported.call(weights(), X))
    other = load(file, params=weights(1))
    np.testing.assert_array_equal(other.call(X), exported.call(weights(1), X))
    np.testing.assert_array_equal(model.with_params(weights(1)).call(X), other.call(X))
    gradient = jax.grad(lambda params: jnp.sum(model.exported.call(params, X)))(model.params)
    assert gradient["dense"]["kernel"].shape == (3, 2)


def test_a_program_alone_is_read_from_the_file(file, exported):
    assert deserialize(file).has_same_function(exported)
    assert describe(file).function.name == "affine"


@pytest.mark.parametrize("read", [str, Path, Path.read_bytes])
def test_a_path_a_file_and_bytes_are_read_alike(file, read):
    source = read(file)
    np.testing.assert_array_equal(load(source).params["dense"]["kernel"], weights()["dense"]["kernel"])
    assert describe(source).weights == describe(file).weights


def test_a_file_that_is_open_is_read_from_its_start(file):
    with open(file, "rb") as opened_file:
        opened_file.read(20)
        assert describe(opened_file) == describe(file)
        assert load(opened_file).exported == deserialize(opened_file)


def test_what_was_written_is_returned_and_described(file, exported, tmp_path, capsys):
    description = save(tmp_path / "again.jaxtf", exported, weights(), metadata={"license": "Apache-2.0"})
    assert description == describe(tmp_path / "again.jaxtf")
    arrays = {array.name: (array.dtype, array.shape, array.size) for array in description.weights.arrays}
    assert arrays == {
        "dense.bias": ("float32", (2,), 8),
        "dense.kernel": ("float32", (3, 2), 24),
        "scale": ("float32", (), 4),
    }
    assert (description.weights.parameters, description.weights.size) == (9, 36)
    kernel = next(array for array in description.weights.arrays if array.name == "dense.kernel")
    assert kernel.sha256 == hashlib.sha256(weights()["dense"]["kernel"].tobytes()).hexdigest()
    assert description.size == (tmp_path / "again.jaxtf").stat().st_size
    assert main(["describe", "--json", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)[0]["weights"]["parameters"] == 9
    assert main(["check", "--no-parse", str(file)]) == 0
    assert capsys.readouterr().out.endswith(f"{file}: weights   ok (3 arrays, 36 bytes)\n")


@needs_safetensors
def test_the_file_is_one_that_the_safetensors_library_reads(file):
    from safetensors import safe_open
    from safetensors.numpy import load_file

    found = load_file(str(file))
    expected = weights()
    np.testing.assert_array_equal(found["dense.kernel"], expected["dense"]["kernel"])
    np.testing.assert_array_equal(found["dense.bias"], expected["dense"]["bias"])
    np.testing.assert_array_equal(found["scale"], expected["scale"])
    assert deserialize(found["jaxtf.program"].tobytes()) == deserialize(file)
    with safe_open(str(file), "np") as opened_file:
        assert set(opened_file.metadata()) == {"jaxtf", "jaxtf.sha256"}


@pytest.mark.parametrize("dtype", DTYPES_OF_WEIGHTS)
def test_weights_of_every_dtype_come_back_as_they_were(tmp_path, dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    content = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 256, 24 * kind.itemsize, np.uint8)
    array = content.view(kind).reshape(4, 6)
    with jax.enable_x64(True):
        exported = export(lambda value, x: (value, x))(jax.ShapeDtypeStruct((4, 6), kind), np.int8(0))
    save(tmp_path / "m", exported, array)
    found = load(tmp_path / "m").params
    assert (found.dtype, found.shape, found.tobytes()) == (kind, (4, 6), array.tobytes())
    assert describe(tmp_path / "m").weights.arrays[0].dtype == dtype_name(kind)


def test_what_is_shared_is_written_and_read_once(tmp_path):
    table = np.ones((50, 40), np.float32)
    params = {"embed": table, "layers": [{"out": table}, {"out": table.copy()}], "n": (1.0, 1.0)}
    exported = export(lambda p, x: x + p["embed"][0, 0] + p["layers"][0]["out"][0, 0] + p["n"][1])(params, X)
    save(tmp_path / "m", exported, params)
    model = load(tmp_path / "m")
    assert [array.name for array in describe(tmp_path / "m").weights.arrays] == [
        "embed",
        "layers.1.out",
        "n.0",
        "n.1",
    ]
    assert model.params["embed"] is model.params["layers"][0]["out"]
    assert model.params["embed"] is not model.params["layers"][1]["out"]
    placed = model._placed[0]
    assert placed["embed"] is placed["layers"][0]["out"]
    np.testing.assert_array_equal(model.call(X), X + 3)


def test_long_weights_are_taken_out_of_the_file_without_a_copy(tmp_path):
    params = [np.ones((129, 129), np.float32), np.ones(3, np.int8), np.ones((257, 255), ml_dtypes.bfloat16)]
    exported = export(lambda p, x: p[0].sum() + p[1].sum() + p[2].astype(jnp.float32).sum() + x)(params, X)
    save(tmp_path / "m", exported, params)
    model = load(tmp_path / "m")
    for mapped, placed in zip(model.params, model._placed[0], strict=True):
        assert not mapped.flags.writeable
        address = mapped.view(np.uint8).__array_interface__["data"][0]
        if mapped.nbytes > 2**15:
            assert placed.unsafe_buffer_pointer() == address
        assert address % mapped.dtype.itemsize == 0
    model.call(X)
    os.unlink(tmp_path / "m")
    gc.collect()
    assert float(model.call(X)[0, 0]) == 129 * 129 + 3 + 257 * 255


def test_weights_of_several_arguments_are_a_tuple(tmp_path):
    exported = export(lambda frozen, x, trained: x @ frozen["w"] + trained)({"w": np.eye(3)}, X, np.zeros(3))
    params = {"w": np.eye(3, dtype=np.float32)}, np.ones(3, np.float32)
    save(tmp_path / "m", exported, params, argnums=(0, 2))
    model = load(tmp_path / "m")
    assert isinstance(model.params, tuple)
    np.testing.assert_array_equal(model.call(X), X + 1)
    assert [array.name for array in describe(tmp_path / "m").weights.arrays] == ["0.w", "2"]
    with pytest.raises(ArgumentMismatch, match="params must be 2 pytrees, one for each of argnums; found 1"):
        load(tmp_path / "m", params=(params[0],))


@pytest.mark.parametrize("argnums", [2, -1, (1, 0), (0, 0), "x"])
def test_argnums_that_are_no_positions_are_refused(tmp_path, exported, argnums):
    with pytest.raises((SerializationError, TypeError), match=r"argnums must be|str"):
        save(tmp_path / "m", exported, weights(), argnums=argnums)
    assert list(tmp_path.iterdir()) == []


def test_weights_of_another_structure_dtype_or_shape_are_refused(tmp_path, exported, file):
    other = weights()
    del other["scale"]
    with pytest.raises(ArgumentMismatch, match=r"params for args\[0\] must be a dict with the keys 'dense', 'scale'"):
        save(tmp_path / "m", exported, other)
    for change, message in (
        (np.zeros((3, 2)), r"args\[0\]\['dense'\]\['kernel'\] must be of dtype float32.*; found float64"),
        (np.zeros((3, 4), np.float32), r"must be of shape \(3, 2\), as the function was exported; found \(3, 4\)"),
        (np.zeros(3, np.float32), r"must be of shape \(3, 2\), as the function was exported; found \(3,\)"),
    ):
        other = weights()
        other["dense"]["kernel"] = change
        for bind in (lambda other=other: save(tmp_path / "m", exported, other), lambda other=other: load(file, other)):
            with pytest.raises(SerializationError, match=message):
                bind()
    assert list(tmp_path.iterdir()) == [file]


def test_keys_of_random_numbers_and_metadata_that_json_does_not_hold_are_refused(tmp_path, exported):
    keyed = export(lambda key, x: x + jax.random.normal(key))(jax.random.key(0), X)
    with pytest.raises(
        SerializationError, match=r"args\[0\] is of dtype key<fry>, which a file of weights has no form"
    ):
        save(tmp_path / "m", keyed, jax.random.key(0))
    for metadata in ({"a": {1, 2}}, {"a": float("nan")}, ["a"]):
        with pytest.raises(SerializationError, match="metadata must be"):
            save(tmp_path / "m", exported, weights(), metadata=metadata)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_replaced_only_if_asked_for(file, exported):
    before = file.read_bytes()
    with pytest.raises(FileExistsError, match=r"save\(..., overwrite=True\)"):
        save(file, exported, weights(1))
    assert file.read_bytes() == before
    model = load(file)
    save(file, exported, weights(1), overwrite=True)
    np.testing.assert_array_equal(model.params["dense"]["kernel"], weights()["dense"]["kernel"])
    np.testing.assert_array_equal(load(file).params["dense"]["kernel"], weights(1)["dense"]["kernel"])
    load(file).save(file.with_name("again"))
    assert describe(file.with_name("again")).weights.arrays == describe(file).weights.arrays


def test_a_save_that_fails_leaves_nothing(tmp_path, exported, monkeypatch):
    class Unreadable:
        shape, dtype = (3, 2), np.dtype("float32")

        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("it spans devices of other processes")

    broken = weights()
    broken["dense"]["kernel"] = Unreadable()
    with pytest.raises(SerializationError, match="cannot be written: it spans devices of other processes\n  remedy:"):
        save(tmp_path / "m", exported, broken)
    assert list(tmp_path.iterdir()) == []


def test_weights_that_are_split_over_devices_are_gathered(tmp_path):
    mesh = jax.make_mesh((4,), ("a",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.device_put(np.arange(32.0, dtype=np.float32), jax.sharding.NamedSharding(mesh, jax.P("a")))
    exported = export(lambda w, x: w.sum() + x)(jax.ShapeDtypeStruct((32,), jnp.float32), X)
    save(tmp_path / "m", exported, split)
    np.testing.assert_array_equal(load(tmp_path / "m").params, np.arange(32.0))


def test_vjps_are_written_as_asked_for(tmp_path, exported, file):
    assert describe(file).vjp_orders == 1
    with pytest.raises(VjpUnavailable):
        load(file).save(tmp_path / "m", vjp_order=2)


def test_an_artifact_and_a_file_of_arrays_alone_are_refused_with_a_message(tmp_path, exported):
    (tmp_path / "a").write_bytes(exported.serialize())
    with pytest.raises(ArtifactError, match=r"a: this is an artifact without weights\n  remedy: "):
        load(tmp_path / "a")
    entry = header_module.Entry("F32", (2,), 0, 8)
    (tmp_path / "b").write_bytes(header_module.encode({"w": entry}, {"format": "pt"}) + bytes(8))
    for read in (load, describe, deserialize):
        with pytest.raises(ArtifactError, match="b: this is a safetensors file of arrays alone, without a program"):
            read(tmp_path / "b")


# Damage


def test_a_changed_bit_anywhere_is_found(file):
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    spaces = len(content[8 : 8 + length]) - len(content[8 : 8 + length].rstrip(b" "))
    source = random.Random(0)
    for place in sorted(source.sample(range(len(content)), 400)):
        if 8 + length - spaces <= place < 8 + length:
            continue  # what fills the header up means nothing
        damaged = bytearray(content)
        damaged[place] ^= 1 << source.randrange(8)
        with pytest.raises((ArtifactError, VersionError)):
            load(bytes(damaged))


def test_damage_of_the_weights_is_found_unless_they_are_not_verified(file, capsys):
    content = bytearray(file.read_bytes())
    place = content.index(weights()["dense"]["kernel"].tobytes())
    content[place] ^= 1
    file.write_bytes(content)
    with pytest.raises(
        ArtifactError, match=r"model.jaxtf: the file is damaged: the array 'dense.kernel' does not have"
    ):
        load(file)
    assert load(file, verify=False).params["dense"]["kernel"].shape == (3, 2)
    assert describe(file).weights.parameters == 9
    assert main(["check", "--no-parse", str(file)]) == 1
    assert "weights   WRONG: the file is damaged: the array 'dense.kernel'" in capsys.readouterr().out


def resealed(content, change):
    """The file with another manifest, under digests that are right."""
    with opened(content) as source:
        parts = parts_of(source)
        header = header_module.read_header(source)
    values = json.loads(texts_of(parts.manifest)["jaxtf"])
    change(values)
    text = json.dumps(values)
    texts = {"jaxtf": text, "jaxtf.sha256": hashlib.sha256(text.encode()).hexdigest()}
    return header_module.encode(header.entries, texts) + content[header.data_start :]


CHANGES = {
    "a later format": lambda values: values.update(format=2),
    "no format": lambda values: values.update(format=True),
    "an argument beyond": lambda values: values.update(arguments=[7]),
    "a negative argument": lambda values: values.update(arguments=[-1]),
    "the input": lambda values: values.update(arguments=[1]),
    "both arguments": lambda values: values.update(arguments=[0, 1]),
    "too few leaves": lambda values: values["leaves"].pop(),
    "leaves in another order": lambda values: values["leaves"].reverse(),
    "a leaf that there is not": lambda values: values["leaves"].__setitem__(0, "x"),
    "another dtype": lambda values: values["arrays"]["dense.kernel"].update(dtype="int32"),
    "no dtype": lambda values: values["arrays"]["dense.kernel"].update(dtype="object"),
    "another shape": lambda values: values["arrays"]["dense.kernel"].update(shape=[2, 3]),
    "an array less": lambda values: values["arrays"].pop("scale"),
    "another place": lambda values: values["arrays"]["scale"].update(start=4),
    "another digest": lambda values: values["arrays"]["scale"].update(sha256="0" * 64),
    "no digest": lambda values: values["arrays"]["scale"].update(sha256="0"),
    "a program elsewhere": lambda values: values["program"].update(start=0),
    "no program": lambda values: values.pop("program"),
    "metadata that are none": lambda values: values.update(metadata=3),
    "no arrays": lambda values: values.update(arrays=[]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_manifest_that_does_not_fit_is_refused_though_its_digest_is_right(file, change):
    with pytest.raises((ArtifactError, VersionError)):
        load(resealed(file.read_bytes(), change))


def test_bytes_of_bool_that_are_neither_0_nor_1_are_refused(tmp_path):
    exported = export(lambda mask, x: jnp.where(mask, x, 0))(jax.ShapeDtypeStruct((2, 3), jnp.bool), X)
    save(tmp_path / "m", exported, np.array([2, 255, 0, 1, 1, 1], np.uint8).view(bool).reshape(2, 3))
    with pytest.raises(ArtifactError, match="of dtype bool has bytes that are neither 0 nor 1"):
        load(tmp_path / "m")


COLD = """
import sys, time
start = time.perf_counter()
from jaxtf.serialization import describe
describe(sys.argv[1])
print(time.perf_counter() - start, sorted({"jax", "numpy", "tensorflow"} & set(sys.modules)))
"""


def test_describing_a_large_file_reads_its_header(tmp_path):
    """Weights of 16 GB, of which the disk has none."""
    size = 16 * 2**30
    exported = export(lambda w, x: x + 1)(jax.ShapeDtypeStruct((size // 4,), jnp.float32), X)
    artifact = exported.serialize()
    entries = {
        "w": header_module.Entry("F32", (size // 4,), 0, size),
        "jaxtf.program": header_module.Entry("U8", (len(artifact),), size, size + len(artifact)),
    }
    values = {
        "format": 1, "arguments": [0], "leaves": ["w"], "metadata": {}, "producer": {},
        "arrays": {
            "w": {
                "dtype": "float32", "shape": [size // 4], "stored": ["F32", [size // 4]], "start": 0, "end": size,
                "sha256": "0" * 64,
            }
        },
        "program": {
            "start": size, "end": size + len(artifact), "sha256": hashlib.sha256(artifact).hexdigest(),
        },
    }  # fmt: skip
    text = json.dumps(values)
    header = header_module.encode(entries, {"jaxtf": text, "jaxtf.sha256": hashlib.sha256(text.encode()).hexdigest()})
    with open(tmp_path / "m", "wb") as sparse:
        sparse.write(header)
        sparse.seek(len(header) + size)
        sparse.write(artifact)
    arguments = [sys.executable, "-c", COLD, str(tmp_path / "m")]
    seconds, _, imported = min(
        subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.partition(" ") for _ in range(3)
    )
    assert imported.strip() == "[]"
    assert float(seconds) < 2  # 0.05 on an idle core
    assert load(tmp_path / "m", verify=False).params.nbytes == size


# Arrays that a function closes over

KERNEL = np.random.default_rng(5).normal(size=(3, 6000)).astype(np.float32)


class Network:
    def __init__(self):
        self.table = np.random.default_rng(6).normal(size=(6000, 3)).astype(np.float32)

    def __call__(self, x):
        return x @ self.table


def test_arrays_that_a_function_closes_over_are_weights_by_the_names_of_their_variables(tmp_path):
    layers = [{"b": np.ones(20_000, np.float32)}, {"b": np.ones(3, np.float32)}]
    network = Network()

    @jax.jit
    def inner(x):
        return x @ KERNEL

    def outer(x, *, scale):
        made_here = jnp.asarray(np.full((6000,), 0.5, np.float32).repeat(3)[:18_000].reshape(6000, 3))
        y = inner(x)
        return network(y) * scale + jnp.sum(layers[0]["b"]) + layers[1]["b"] + y @ made_here

    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 3"), jnp.float32)
    model = export_model(outer)(spec, scale=np.float32(2))
    assert sorted(model.params) == ["KERNEL", "constant_0", "layers.0.b", "network.table"]
    assert np.shares_memory(model.params["KERNEL"], KERNEL)
    assert len(model.exported.mlir_module_serialized) < 2**14
    model.save(tmp_path / "m", vjp_order=1)
    again = load(tmp_path / "m")
    np.testing.assert_array_equal(again.call(X, scale=np.float32(3)), model.call(X, scale=np.float32(3)))
    np.testing.assert_allclose(model.call(X, scale=np.float32(3)), outer(X, scale=np.float32(3)), rtol=1e-5)
    zeros = {name: np.zeros_like(array) for name, array in again.params.items()}
    np.testing.assert_array_equal(again.with_params(zeros).call(X, scale=np.float32(3)), np.ones((2, 3)))


def test_a_function_without_large_arrays_is_refused_with_a_message():
    with pytest.raises(SerializationError, match=r"'<lambda>' closes over no array of 65,536 bytes or more; or"):
        export_model(lambda x: x + 1)(X)


def test_arrays_of_64_bits_stay_in_the_module_where_64_bit_types_are_off(tmp_path):
    with jax.enable_x64(True):
        numbers = jnp.arange(10_000) * 2**33

    def fun(x):
        return x @ KERNEL, numbers[1:4]

    with jax.enable_x64(False):
        model = export_model(fun)(X)
        model.save(tmp_path / "m")
        assert list(model.params) == ["KERNEL"]
        for found, expected in zip(load(tmp_path / "m").call(X), jax.jit(fun)(X), strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        *[("int32", number) for number in (2.7, -1.5, 2**40, 2**80, 2 + 1j, True, None, "3", [1])],
        *[
            ("int8", 300),
            ("uint8", -1),
            ("bool", 2),
            ("bool", 1.0),
            ("float16", 1e6),
            ("float32", 10**40),
            ("float32", "nan"),
        ],
        *[("float32", 1j), ("int32", float("inf"))],
        *[("int4", number) for number in (8, -9, 1.5, True, float("nan"))],
        *[("uint4", number) for number in (16, -1, 2.7)],
    ],
)
def test_a_number_that_the_dtype_does_not_have_is_refused(tmp_path, dtype, number):
    exported = export(lambda p, x: x * p)(jax.ShapeDtypeStruct((), dtype), jax.ShapeDtypeStruct((), dtype))
    with pytest.raises(SerializationError, match=f"must be a number of dtype {dtype}|structure|must be of shape"):
        save(tmp_path / "m", exported, number)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        *[("int8", -128), ("uint8", 255), ("bool", True), ("float32", 3), ("float16", 0.1)],
        *[
            ("float32", float("inf")),
            ("float32", float("nan")),
            ("complex64", 2.5),
            ("bfloat16", 1.5),
            ("float8_e5m2", 2),
        ],
    ],
)
def test_a_python_number_that_the_dtype_has_is_saved(tmp_path, dtype, number):
    exported = export(lambda p: p)(jax.ShapeDtypeStruct((), dtype))
    save(tmp_path / "m", exported, number)
    np.testing.assert_array_equal(load(tmp_path / "m").call(), jnp.asarray(number, dtype))


@pytest.mark.parametrize(("argnums", "count"), [(0, 1), (0, 3), (2, 1), ((0, 2), 0), ((0, 2), 2)])
def test_a_call_with_too_few_or_too_many_arguments_is_refused(tmp_path, argnums, count):
    exported = export(lambda a, b, c: a + b + c)(*[jax.ShapeDtypeStruct((2,), jnp.float32)] * 3)
    weights = np.ones(2, np.float32)
    save(tmp_path / "m", exported, weights if isinstance(argnums, int) else (weights, weights), argnums=argnums)
    wanted = 2 if isinstance(argnums, int) else 1
    with pytest.raises(
        ArgumentMismatch, match=f"takes {wanted} positional arguments besides its weights; found {count}"
    ):
        load(tmp_path / "m").call(*[weights] * count)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Scaled:
    """Weights with a static field."""

    w: object
    factor: int = dataclasses.field(metadata={"static": True})


def test_weights_with_other_static_fields_than_exported_are_refused(tmp_path):
    program, three, four = export(lambda p, x: p.w * p.factor + x), Scaled(np.float32(2), 3), Scaled(np.float32(2), 4)
    exported = program(three, np.float32(0))
    save(tmp_path / "m", exported, three)
    model = load(tmp_path / "m", params=three)
    assert float(model.call(1.0)) == 7
    for bind in (
        lambda: save(tmp_path / "n", exported, four),
        lambda: ExportedModel(exported, four),
        lambda: load(tmp_path / "m", params=four),
        lambda: model.with_params(four),
    ):
        with pytest.raises(
            ArgumentMismatch,
            match=r"params for args\[0\] must be a .*Scaled with the auxiliary data .*3.*, as exported; found .*4.*",
        ):
            bind()
    assert not (tmp_path / "n").exists()


def scaled(params, x):
    return params["w"] * x


def scaled_weights(w):
    return {"w": w}, export(scaled)({"w": jax.ShapeDtypeStruct(np.shape(w), np.asarray(w).dtype)}, np.float32(0))


def test_masked_arrays_are_refused(tmp_path):
    params, exported = scaled_weights(np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype=np.float32))
    for bind in (
        lambda: save(tmp_path / "m", exported, params),
        lambda: ExportedModel(exported, params),
        lambda: ExportedModel(exported, {"w": np.ones(3, np.float32)}).with_params(params),
    ):
        with pytest.raises(SerializationError) as caught:
            bind()
        assert str(caught.value) == (
            "args[0]['w'] is a masked array of NumPy, whose mask would be lost\n"
            "  remedy: array.filled(value) with a value for masked elements, and the mask as an argument of its own"
        )


def test_a_model_that_is_called_within_jit_first_is_called_outside_after():
    params, exported = scaled_weights(jnp.arange(3.0))
    model = ExportedModel(exported, params)
    for _ in range(2):
        np.testing.assert_array_equal(jax.jit(model.call)(np.float32(2)), [0, 2, 4])
        np.testing.assert_array_equal(model.call(np.float32(2)), [0, 2, 4])
    np.testing.assert_array_equal(jax.vmap(model.call)(np.float32([1, 2])), [[0, 1, 2], [0, 2, 4]])


def test_weights_are_placed_once(monkeypatch):
    params, exported = scaled_weights(np.arange(3, dtype=np.float32))
    model = ExportedModel(exported, params)
    model.call(np.float32(2))
    monkeypatch.setattr(jax, "device_put", None)
    model.call(np.float32(2))


def test_weights_of_64_bits_are_placed_as_what_they_are():
    with jax.enable_x64(True):
        params, exported = scaled_weights(np.array([0.1, 0.2]))
    model = ExportedModel(exported, params)
    with jax.enable_x64(False), pytest.raises(Exception, match="float32"):
        model.call(np.float32(2))
    with jax.enable_x64(True):
        np.testing.assert_array_equal(model.call(np.float32(2)), np.array([0.1, 0.2]) * 2)


def two(p, x):
    return p * x


@pytest.mark.parametrize(
    ("argnums", "params", "expected"),
    [
        (np.int64(0), np.float32(3), 0),
        (np.int64(1), np.float32(3), 1),
        ([0], (np.float32(3),), (0,)),
        ((np.int32(1),), (np.float32(3),), (1,)),
        (np.array([0, 1]), (np.float32(3), np.float32(2)), (0, 1)),
    ],
)
def test_positions_are_integers_and_load_as_they_were_saved(argnums, params, expected, tmp_path):
    exported = export(two)(np.float32(0), np.float32(0))
    save(tmp_path / "m", exported, params, argnums=argnums)
    for model in (load(tmp_path / "m"), ExportedModel(exported, params, argnums), load(tmp_path / "m", params=params)):
        assert model.argnums == expected
        assert type(model.argnums) is type(expected)
        assert jax.tree.structure(model.params) == jax.tree.structure(params)
        rest = [np.float32(2)] * (2 - len(model.positions))
        assert model.call(*rest) == 6


@pytest.mark.parametrize("argnums", [True, False, (True,), 0.0, "0", None, (0.0,), -1, 2, (1, 0), (0, 0)])
def test_what_is_not_a_position_is_refused(argnums, tmp_path):
    exported = export(two)(np.float32(0), np.float32(0))
    for bind in (
        lambda: save(tmp_path / "m", exported, (np.float32(3),), argnums=argnums),
        lambda: ExportedModel(exported, (np.float32(3),), argnums),
    ):
        with pytest.raises(SerializationError, match="argnums must be positions of arguments of 'two', ascending"):
            bind()
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({1: "a", "1": "b"}, "metadata must have texts for keys; found 1"),
        ({"a": {"b": [{None: 1}]}}, "metadata must have texts for keys; found None"),
        ({"a": "x\ud800"}, r"a text that UTF-8 does not have: ...'x\\ud800'"),
        ({"x\ud800": 1}, r"a text that UTF-8 does not have: ...'x\\ud800'"),
    ],
)
def test_metadata_that_would_be_lost_are_refused(metadata, message, tmp_path):
    exported = export(two)(np.float32(0), np.float32(0))
    with pytest.raises(SerializationError, match=message):
        save(tmp_path / "m", exported, np.float32(3), metadata=metadata)
    assert not (tmp_path / "m").exists()


def test_keys_that_utf_8_does_not_have_are_refused(tmp_path):
    key = "a\ud800"
    exported = export(lambda p, x: p[key] * x)({key: np.float32(0)}, np.float32(0))
    for write in (exported.serialize, lambda: save(tmp_path / "m", exported, {key: np.float32(2)})):
        with pytest.raises(SerializationError, match=r"a text that UTF-8 does not have: .*\\ud800"):
            write()
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("values", [[1.0, 2.0], (1.0, 2.0), array.array("f", [1, 2]), [np.float32(1), np.float32(2)]])
def test_containers_in_place_of_an_array_are_refused(values, tmp_path):
    spec = jax.ShapeDtypeStruct((2,), jnp.float32)
    exported = export(lambda params, x: x @ params["w"])({"w": spec}, spec)
    message = (
        "args[0]['w'] must be an array of dtype float32, as the function was exported; found a "
        f"{type(values).__name__} of 2 values\n  remedy: pass numpy.asarray(value, 'float32')"
    )
    for refused in (
        lambda: ExportedModel(exported, {"w": values}),
        lambda: save(tmp_path / "m", exported, {"w": values}),
        lambda: ExportedModel(exported, {"w": np.ones(2, np.float32)}).with_params({"w": values}),
    ):
        with pytest.raises(SerializationError) as error:
            refused()
        assert str(error.value) == message
    assert list(tmp_path.iterdir()) == []


def test_numbers_are_weights_of_their_own():
    spec = jax.ShapeDtypeStruct((), jnp.float32)
    model = ExportedModel(
        export(lambda params, x: params["a"] - params["b"] + x)({"a": spec, "b": spec}, spec), {"a": 3.0, "b": 1.0}
    )
    assert model.call(np.float32(0)) == 2
