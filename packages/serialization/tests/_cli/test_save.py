"""`jaxtf-artifact save` and `upgrade` of programs with weights: copied piece by piece, whole or not at all."""

import importlib.util
import os
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from jaxtf.serialization import describe, deserialize, load, save
from jaxtf.serialization._cli.program import main
from jaxtf.serialization._container.header import Entry, encode

needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="exports")

if importlib.util.find_spec("jax"):
    import jax
    import jax.numpy as jnp

    from jaxtf.serialization import export


def run(capsys, *arguments):
    """Exit code, standard output, standard error."""
    code = main([str(word) for word in arguments])
    return code, *capsys.readouterr()


def dense(params, x):
    return x @ params["w"] + params["b"][0] + params["b"][1]


W = np.arange(6, dtype=np.float32).reshape(3, 2)
PARAMS = {"w": W, "b": [W[0], W[1]]}
X = np.ones((1, 3), np.float32)
BY_NAME = {"w": W, "b.0": W[0], "b.1": W[1]}


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.jaxtf").write_bytes(export(dense)(PARAMS, X).serialize(vjp_order=1))
    return tmp_path / "program.jaxtf"


def plain(path, arrays):
    from safetensors.numpy import save_file

    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    return path


@needs_jax
def test_an_artifact_and_a_safetensors_file_become_a_program_with_weights(program, tmp_path, capsys):
    pytest.importorskip("safetensors")
    weights, out = plain(tmp_path / "w.safetensors", BY_NAME), tmp_path / "model.jaxtf"
    code, printed, stderr = run(capsys, "save", program, weights, "-o", out)
    assert (code, printed) == (0, "")
    assert stderr.startswith(f"wrote {out}: {out.stat().st_size:,} bytes, 3 arrays of 40 bytes, program sha256 ")
    model = load(out)
    np.testing.assert_array_equal(model.call(X), dense(PARAMS, X))
    assert model.exported == deserialize(program)
    assert model.exported.has_vjp()
    save(tmp_path / "by_python.jaxtf", deserialize(program), PARAMS, vjp_order=1)
    assert out.read_bytes() == (tmp_path / "by_python.jaxtf").read_bytes()
    assert main(["check", str(out)]) == 0


@needs_jax
def test_weights_of_a_saved_file_and_the_metadata_of_a_program_are_taken(program, tmp_path, capsys):
    shared = {"w": W + 1, "b": [W[2], W[2]]}
    shared["b"][1] = shared["b"][0]
    save(tmp_path / "old.jaxtf", deserialize(program), PARAMS, metadata={"kept": [1]})
    save(tmp_path / "new.jaxtf", deserialize(program), shared, metadata={"not": "taken"})
    out = tmp_path / "out.jaxtf"
    assert run(capsys, "save", tmp_path / "old.jaxtf", tmp_path / "new.jaxtf", "-o", out)[0] == 0
    model = load(out)
    np.testing.assert_array_equal(model.call(X), dense(shared, X))
    assert model.metadata == {"kept": [1]}
    assert len(describe(out).weights.arrays) == 2  # an array at two places is written once


@needs_jax
@pytest.mark.parametrize("argnums", ["1", "0,1"])
def test_weights_are_for_the_arguments_that_are_named(argnums, tmp_path, capsys):
    pytest.importorskip("safetensors")
    params = {"w": W.astype(ml_dtypes.bfloat16), "n": np.array([True, False])}
    (tmp_path / "p").write_bytes(export(lambda x, p: x @ p["w"] + p["n"])(X, params).serialize())
    arrays = params if argnums == "1" else {"0": X, "1.w": params["w"], "1.n": params["n"]}
    out = tmp_path / "out.jaxtf"
    code, _, stderr = run(
        capsys, "save", tmp_path / "p", plain(tmp_path / "w", arrays), "-o", out, "--argnums", argnums
    )
    assert code == 0, stderr
    found = load(out).call(X) if argnums == "1" else load(out).call()
    np.testing.assert_array_equal(found, X @ params["w"] + params["n"])


@needs_jax
@pytest.mark.parametrize(
    ("arrays", "words", "says"),
    [
        ({"w": W, "b.0": W[0]}, [], "the weights are not those of 'dense'\n  missing:  b.1\n  remedy:"),
        (BY_NAME | {"step": W[0]}, [], "  unused:   step\n  remedy:   --allow-unused leaves these out"),
        (BY_NAME | {"w": W.T}, [], "args[0]['w'] must be of shape (3, 2), as the function was exported; found (2, 3)"),
        (
            BY_NAME | {"w": W.astype(np.float16)},
            [],
            "the array 'w' is F16 of shape (3, 2), where the function takes flo",
        ),
        (BY_NAME, ["--argnums", "2"], "--argnums '2': write positions of arguments, ascending and less than 2"),
        (BY_NAME, ["--argnums", "1,0"], "--argnums '1,0': write positions"),
        (BY_NAME, ["--argnums", "1"], "  missing:  array\n  unused:   "),
    ],
)
def test_weights_that_the_program_does_not_take_are_refused(program, arrays, words, says, capsys):
    pytest.importorskip("safetensors")
    weights, out = plain(program.with_name("w.safetensors"), arrays), program.with_name("out.jaxtf")
    code, _, stderr = run(capsys, "save", program, weights, "-o", out, *words)
    assert code == 2
    assert says in stderr
    assert stderr.startswith(f"jaxtf-artifact: {program if words and words[1] != '1' else weights}: ")
    assert not out.exists()
    if "step" in arrays:
        assert run(capsys, "save", program, weights, "-o", out, "--allow-unused")[0] == 0


@needs_jax
def test_a_plain_file_has_no_dtypes_but_those_of_safetensors(tmp_path, capsys):
    pytest.importorskip("safetensors")
    int4 = np.array([1, -2], ml_dtypes.int4)
    (tmp_path / "p").write_bytes(export(lambda w: w.astype(jnp.float32))(int4).serialize())
    weights = plain(tmp_path / "w", {"array": np.array([1, 200], np.uint8)})
    code, _, stderr = run(capsys, "save", tmp_path / "p", weights, "-o", tmp_path / "out")
    assert code == 2
    assert "the array 'array' is U8 of shape (2,), where the function takes int4" in stderr


@needs_jax
def test_files_are_replaced_by_force_alone_and_inputs_never(program, tmp_path, capsys):
    pytest.importorskip("safetensors")
    weights, out = plain(tmp_path / "w.safetensors", BY_NAME), tmp_path / "out.jaxtf"
    out.write_text("old")
    code, _, stderr = run(capsys, "save", program, weights, "-o", out)
    assert (code, stderr) == (2, f"jaxtf-artifact: {out}: the file exists\n  remedy: --force overwrites it\n")
    for file in (program, weights):
        code, _, stderr = run(capsys, "save", program, weights, "-o", file, "--force")
        assert (code, "this is the input, which is not overwritten" in stderr) == (2, True)
    for place in ("-", os.devnull):
        code, _, stderr = run(capsys, "save", program, weights, "-o", place, "--force")
        assert (code, "a program with its weights is written to a file on a disk" in stderr) == (2, True)
    assert out.read_text() == "old"
    assert run(capsys, "save", program, weights, "-o", out, "--force")[0] == 0
    assert run(capsys, "save", program, tmp_path / "absent", "-o", out, "--force")[0] == 2
    assert run(capsys, "save", program, program, "-o", tmp_path / "x")[2].endswith(
        "this is not a safetensors file\n  remedy: safetensors.numpy.save_file writes arrays by name\n"
    )
    assert not list(tmp_path.glob(".*partial"))


@pytest.mark.slow(1)
@needs_jax
@pytest.mark.parametrize("argnums", [0, (0,), (0, 1)])
def test_a_program_with_weights_is_rewritten_with_them(program, argnums, tmp_path, capsys):
    old, new = tmp_path / "old.jaxtf", tmp_path / "new.jaxtf"
    shared = {"w": W, "b": [W[2], W[2]]}
    shared["b"][1] = shared["b"][0]
    given = {0: shared, (0,): (shared,), (0, 1): (shared, X)}[argnums]
    save(old, deserialize(program), given, argnums=argnums, vjp_order=1, metadata={"kept": 1})
    words = ["upgrade", old, "-o", new, "--stablehlo-version", "1.9.0"]
    code, _, stderr = run(capsys, *words)
    assert (code, stderr.startswith(f"wrote {new}: ")) == (0, True), stderr
    before, after = describe(old), describe(new)
    assert (after.weights.arrays, after.weights.metadata) == (before.weights.arrays, before.weights.metadata)
    model = load(new)
    assert (model.argnums, model.exported.has_vjp()) == (argnums, True)
    assert describe(new).functions[0].stablehlo_version == "1.9.0"
    np.testing.assert_array_equal(model.call(*() if argnums == (0, 1) else (X,)), dense(shared, X))
    assert run(capsys, *words)[0] == 2  # it exists
    assert run(capsys, "upgrade", old, "-o", old, "--force")[0] == 2
    damaged = bytearray(old.read_bytes())
    damaged[damaged.index(W.tobytes())] ^= 1
    old.write_bytes(damaged)
    code, _, stderr = run(capsys, "upgrade", old, "-o", new, "--force")
    assert (code, "does not have the SHA-256 that it was written with" in stderr) == (2, True)
    np.testing.assert_array_equal(load(new).call(*() if argnums == (0, 1) else (X,)), dense(shared, X))


MEASURED = """
import resource, sys
from jaxtf.serialization._cli.program import main
limit = 400 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))  # memory of its own; mapped files are not in it
assert main(sys.argv[1:]) == 0
"""


@pytest.mark.slow
@needs_jax
def test_weights_larger_than_the_memory_are_copied(tmp_path):
    sizes = (2**27,)
    spec = jax.ShapeDtypeStruct(sizes, jnp.float32)
    program = export(lambda w, i: w[i])(spec, jax.ShapeDtypeStruct((), jnp.int32))
    (tmp_path / "p").write_bytes(program.serialize())
    weights = tmp_path / "w"
    with weights.open("wb") as file:
        file.write(encode({"array": Entry("F32", sizes, 0, 2**29)}, {}))
        file.truncate(file.tell() + 2**29)  # zeros that take no space on the disk
    for words in (["save", tmp_path / "p", weights, "-o", tmp_path / "m"], ["upgrade", tmp_path / "m", "-o", weights]):
        command = [sys.executable, "-c", MEASURED, *map(str, words), "--force"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert "1 arrays of 536,870,912 bytes" in ran.stderr
