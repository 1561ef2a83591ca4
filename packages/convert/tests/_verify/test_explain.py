"""`explain`: every refusal at once, with line and remedy, and the lines that graphs consist of."""

import json

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from jaxtf.convert import FunctionTypeError, GraphModeUnsupported, convert, explain
from jaxtf.convert._verify import cli
from jaxtf.serialization import export
from jaxtf.shapepoly import symbolic_shape

SPEC = jax.ShapeDtypeStruct((8, 8), jnp.float32)


def five(x):
    bits = lax.map(lambda key: lax.rng_bit_generator(key, (3,))[1], jnp.zeros((2, 4), jnp.uint32))  # 1
    upper, _ = lax.linalg.schur(x)  # 2
    x = sum(lax.linalg.hessenberg(matrix)[0] for matrix in (x, upper, x @ upper))  # 3
    diagonal = lax.linalg.tridiagonal(x)[1]  # 4
    first = jax.scipy.linalg.qr(x, pivoting=True)[0]  # 5
    return bits, upper, jnp.linalg.eigvals(first), jnp.sin(diagonal)  # 6


NAMES = ("rng_bit_generator", "schur", "hessenberg", "tridiagonal", "qr")


def line(number, function=five):
    return f"{__file__}:{function.__code__.co_firstlineno + number}"


@pytest.fixture(scope="module")
def explanation():
    return explain(five, SPEC)


def found(mode):
    return [(refusal.operation.rpartition(".")[2], refusal.line, refusal.count) for refusal in mode.refusals]


def test_a_program_with_five_refusals_shows_all_of_them(explanation):
    counts = dict.fromkeys(NAMES, 1) | {"hessenberg": 3}
    expected = [(name, line(number), counts[name]) for number, name in enumerate(NAMES, 1)]
    assert found(explanation["graph_without_xla"]) == expected
    assert found(explanation["graph"]) == expected[1:]
    assert found(explanation["tflite"])[:5] == expected
    of_eigenvalues = [("BitwiseAnd", line(6), 1), ("Eig", line(6), 1), ("SelectV2", "", 1)]
    left = [*of_eigenvalues, ("TensorScatterUpdate", line(1), 1)]
    assert sorted(found(explanation["tflite"])[5:]) == left
    assert not explanation.ok
    text = str(explanation)
    assert f"  custom_call.jaxtf.hessenberg, 3 times, at {line(3)}\n    TensorFlow has no such factorization\n" in text
    assert "graph mode without XLA operations (enable_xla=False): refused: 7 operations" in text


def test_graph_mode_refuses_what_is_explained_and_nothing_else(explanation):
    first = explanation["graph"].refusals[0]
    with pytest.raises(GraphModeUnsupported, match=first.operation):
        convert(five, native_serialization=False)(jnp.ones((8, 8)))


def test_a_mode_that_there_is_not_is_refused_with_those_that_there_are(explanation):
    with pytest.raises(KeyError, match="no mode 'fast' was explained; there are native, graph, graph_without_xla, tfl"):
        explanation["fast"]


def test_native_mode_has_its_own_refusals(explanation):
    assert explanation["native"].error.startswith("LapackNeeded: linear algebra that calls jaxlib's LAPACK")
    assert all(name in explanation["native"].error for name in ("schur", "hessenberg", "tridiagonal", "eig"))


def quadrature(x):
    """As a library writes one: a sum over nodes in Python, so that each becomes operations of its own."""
    total = jnp.zeros_like(x)
    for node in range(100):
        total += jnp.exp(-((x - node / 100) ** 2))  # 3
    return total / 100


def test_a_quadrature_that_unrolls_is_seen_by_its_line():
    mode = explain(quadrature, jax.ShapeDtypeStruct(symbolic_shape("b"), jnp.float32))["graph"]
    assert mode.ok
    [most, *_] = mode.nodes_of_lines.items()
    assert most[0] == line(4, quadrature)
    assert most[1] > 0.75 * mode.nodes > 400
    assert f"  {most[1]:,} of the operations are of {most[0]}" in str(mode)
    assert sum(mode.nodes_of_lines.values()) <= mode.nodes


def test_the_constraints_that_sizes_need_are_part_of_it_and_hold_in_it():
    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 8"), jnp.float32)
    explanation = explain(lambda x: lax.slice_in_dim(x, 0, 4), spec)
    assert explanation.constraints.texts == ["b >= 4"]
    assert explanation.ok, str(explanation)
    assert "its sizes need constraints: constraints=['b >= 4']" in str(explanation)


def test_of_what_tflite_leaves_over_only_the_lines_of_that_dtype_are_shown():
    def mixed(x, n):
        y = x - 1  # a builtin operation
        return y, n - 1

    mode = explain(mixed, SPEC, jax.ShapeDtypeStruct((2,), jnp.int16))["tflite"]
    assert found(mode) == [("Sub", line(2, mixed), 1)]


def test_what_jax_cannot_lower_is_reported_for_every_mode():
    explanation = explain(lambda x: jax.pure_callback(lambda x: x, SPEC, x), SPEC)
    assert [mode.error.partition(":")[0] for mode in explanation.modes] == ["HostCallbackError"] * 4


def test_an_artifact_is_explained_as_it_is():
    explanation = explain(export(jnp.sin)(SPEC).serialize())
    assert explanation.ok
    assert explanation.constraints is None
    assert json.loads(json.dumps(explanation.to_json()))["modes"]["graph"]["ok"]
    with pytest.raises(FunctionTypeError, match="explain needs a function, found float"):
        explain(3.0)


def test_the_command_explains(monkeypatch, tmp_path, capsys):
    (tmp_path / "model_to_explain.py").write_text("import jax\ndef f(x): return jax.lax.linalg.schur(x)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(["model_to_explain:f", "f32[3, 3]", "--explain"]) == 1
    out = capsys.readouterr().out
    assert f"  custom_call.jaxtf.schur, at {tmp_path}/model_to_explain.py:2\n" in out
    assert cli.main(["jax.numpy:sin", "f32[b]", "--explain", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
