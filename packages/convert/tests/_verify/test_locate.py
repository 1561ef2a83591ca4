"""`verify(..., locate=True)`: the line where a backend begins to differ."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxtf.convert import verify
from jaxtf.convert._graph.table import entries
from jaxtf.convert._verify import cli, locate
from jaxtf.convert._verify.steps import recording, steps_of
from jaxtf.serialization import LiftUnsupported, export
from jaxtf.shapepoly import symbolic_shape

SPEC = jax.ShapeDtypeStruct((3, 4), jnp.float32)


@jax.jit
def dense(x):
    return jnp.tanh(x) * 2  # 2


def body(carry, row):
    carry = carry + jnp.sin(row)  # 1
    return carry, carry * 2


def scanned(x):
    x = dense(x)
    x = jax.checkpoint(lambda x: x - jnp.where(x > 1, x, 0.5))(x)
    carry, rows = lax.scan(body, jnp.zeros(4), x, reverse=True)
    key = jax.random.wrap_key_data(jnp.arange(2, dtype=jnp.uint32))  # whose value TensorFlow has no dtype for
    return carry + jax.random.key_data(key).sum(), rows, jax.nn.relu(x)


def line(function, number):
    return f"{__file__}:{function.__code__.co_firstlineno + number}"


def test_every_value_of_a_function_is_recorded_with_its_line():
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    steps, values = steps_of(scanned, [SPEC]), recording(scanned)(x)
    assert len(steps) == len(values) > 10
    by_name = dict(zip([(step.primitive, step.line) for step in steps], values, strict=True))
    np.testing.assert_allclose(by_name["tanh", line(dense.__wrapped__, 2)], np.tanh(x), rtol=1e-6)
    inside = by_name["sin", line(body, 1)]
    assert inside.shape == (3, 4)
    carry = next(step for step in steps if step.line == line(body, 1))
    assert carry.is_reversed
    assert steps[carry.scan].scan == carry.scan
    for result, expected in zip(jax.eval_shape(scanned, SPEC), scanned(x), strict=True):
        assert any(value.shape == result.shape and np.allclose(value, expected) for value in values)


def broken(monkeypatch, name, change):
    """Changes what graph mode gives for an operation."""
    import dataclasses

    entry = entries()[name]
    monkeypatch.setitem(
        entries(), name, dataclasses.replace(entry, emit=lambda op, *operands: change(entry.emit(op, *operands)))
    )


def the_place(fun, question="values"):
    report = verify(fun, SPEC, backends=["graph_mode"], numbers=["regular"], locate=True)
    return next(row.place for row in report.rows if row.question == question and row.outcome == "differs")


def test_a_fault_in_a_scan_is_located_in_its_body_and_iteration(monkeypatch):
    broken(monkeypatch, "stablehlo.sine", lambda y: y + 0.25)
    place = the_place(scanned)
    assert (place.line, place.primitive, place.iteration) == (line(body, 1), "sin", 2)
    assert "in iteration 2 of its scan" in str(place)


def test_a_fault_in_a_gradient_alone_is_located_in_the_gradient(monkeypatch):
    def loss(x):
        return jnp.sin(x).sum()  # whose derivative is the cosine

    broken(monkeypatch, "stablehlo.cosine", lambda y: y * 1.5)
    place = the_place(loss, "gradients")
    assert (place.line, place.primitive) == (line(loss, 1), "cos")


def test_what_agrees_before_is_counted_and_the_numbers_are_shown(monkeypatch):
    broken(monkeypatch, "stablehlo.tanh", lambda y: y * float("nan"))
    place = the_place(dense)
    assert (place.step, place.found.not_finite, place.expected.not_finite) == (0, 12, 0)
    assert "found: float32[3,4] from nan to nan, mean nan, 12 not finite" in str(place)


def test_where_nothing_differs_nothing_is_located():
    report = verify(dense, SPEC, backends=["eager"], numbers=["regular"], locate=True)
    assert {row.place for row in report.rows} == {None}


def places_of_artifact(fun, *specs, backends=("graph_mode",)):
    blob = export(fun)(*specs).serialize(vjp_order=1)
    report = verify(blob, backends=backends, numbers=["regular"], locate=True)
    return {row.question: row.place for row in report.rows if row.outcome == "differs" and row.place is not None}


def test_a_fault_is_located_in_an_artifact_at_its_line_and_in_its_own_gradient(monkeypatch):
    def loss(ids, x):
        x = dense(x)
        carry, rows = lax.scan(body, jnp.zeros(4), x)
        return carry[ids].sum(), rows, ids + 1

    broken(monkeypatch, "stablehlo.sine", lambda y: y + 0.25)
    broken(monkeypatch, "stablehlo.cosine", lambda y: y * 1.5)
    places = places_of_artifact(loss, jax.ShapeDtypeStruct((2,), jnp.int32), SPEC)
    found = {question: (place.line, place.primitive, place.iteration) for question, place in places.items()}
    assert found == {"values": (line(body, 1), "sin", 0), "gradients": (line(body, 1), "cos", 0)}
    assert places["values"].operations == ("stablehlo.sine",)


@pytest.mark.slow
def test_a_fault_is_located_in_an_artifact_of_symbolic_sizes(monkeypatch):
    @jax.custom_vjp
    def bent(x):
        return jnp.sin(x)

    def backward(x, cotangent):
        return (cotangent * jnp.expm1(x),)

    bent.defvjp(lambda x: (jnp.sin(x), x), backward)

    def loss(ids, x):
        return jnp.tanh(bent(x)[ids]), ids + 1

    broken(monkeypatch, "stablehlo.exponential_minus_one", lambda y: y * 1.5)
    sizes = symbolic_shape("b, n")
    places = places_of_artifact(
        loss, jax.ShapeDtypeStruct(sizes[1:], jnp.int32), jax.ShapeDtypeStruct((*sizes, 2), jnp.float32)
    )
    assert {question: (place.line, place.primitive) for question, place in places.items()} == {
        "gradients": (line(loss, 1), "expm1")  # JAX has the line of the call for backward
    }


@pytest.mark.slow
@pytest.mark.parametrize("primitive", ["minimum", "select"])
def test_an_artifact_and_its_function_are_located_at_the_same_operation(monkeypatch, primitive):
    def chain(x):
        x = jnp.tanh(x)
        x = jnp.where(x > 0.5, x, 0.1 * x)
        x = jnp.exp(jnp.minimum(x, 0.7))
        return jnp.sin(x)

    broken(monkeypatch, f"stablehlo.{primitive}", lambda y: y * 1.5)
    found = the_place(chain)
    in_artifact = places_of_artifact(chain, SPEC)["values"]
    assert (in_artifact.line, in_artifact.operations[-1]) == (found.line, f"stablehlo.{primitive}")
    assert (in_artifact.expected, in_artifact.found) == (found.expected, found.found)


def test_an_artifact_of_what_lift_refuses_says_so(monkeypatch):
    def refused(exported):
        raise LiftUnsupported("lift does not evaluate stablehlo.custom_call: unknown")

    monkeypatch.setattr(locate, "lifted", refused)
    broken(monkeypatch, "stablehlo.tanh", lambda y: y * 2)
    place = places_of_artifact(dense, SPEC)["values"]
    assert place == (
        "in an artifact, locating evaluates its operations in JAX: lift does not evaluate "
        "stablehlo.custom_call: unknown"
    )


def test_a_fault_in_a_scan_over_a_symbolic_size_is_located_in_its_body(monkeypatch):
    def sums(x):
        return lax.scan(body, jnp.zeros(4), x)

    broken(monkeypatch, "stablehlo.sine", lambda y: y + 0.25)
    spec = jax.ShapeDtypeStruct(symbolic_shape("b, 4"), jnp.float32)
    report = verify(sums, spec, backends=["graph_mode"], numbers=["regular"], gradients=False, locate=True)
    place = report.rows[0].place
    assert (place.line, place.primitive, place.iteration) == (line(body, 1), "sin", 0)


def test_the_command_locates_in_a_file(monkeypatch, tmp_path, capsys):
    (tmp_path / "dense.jaxtf").write_bytes(export(dense)(SPEC).serialize())
    broken(monkeypatch, "stablehlo.tanh", lambda y: y * 2)
    asked = [str(tmp_path / "dense.jaxtf"), "--locate", "--backend", "graph_mode", "--numbers", "regular"]
    assert cli.main(asked) == 1
    assert f"first differs at {line(dense.__wrapped__, 2)}: tanh (stablehlo.tanh), by" in capsys.readouterr().out


def test_the_command_locates(monkeypatch, tmp_path, capsys):
    (tmp_path / "model_to_locate.py").write_text("import jax.numpy as jnp\ndef f(x): return jnp.tanh(x) + 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    broken(monkeypatch, "stablehlo.tanh", lambda y: y * 2)
    asked = [
        "model_to_locate:f",
        "f32[b]",
        "--locate",
        "--backend",
        "graph_mode",
        "--values-only",
        "--numbers",
        "regular",
    ]
    assert cli.main(asked) == 1
    assert f"\n  first differs at {tmp_path}/model_to_locate.py:2: tanh (stablehlo.tanh), by" in capsys.readouterr().out
    assert cli.main([*asked, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["rows"][0]["place"]["primitive"] == "tanh"
