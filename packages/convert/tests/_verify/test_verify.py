"""`verify` and `jaxtf-verify`: they see what is wrong, and pass what is right."""

import dataclasses
import io
import json
import resource
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax.interpreters import mlir as jax_mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from jaxtf.convert import ConversionOptionError, GraphModeUnsupported, verify
from jaxtf.convert._convert import target
from jaxtf.convert._graph.table import entries
from jaxtf.convert._verify import backends, cli, subject
from jaxtf.convert._verify.compare import difference
from jaxtf.convert._verify.names import BACKEND_NAMES
from jaxtf.convert._verify.numbers import NUMBERS, argument
from jaxtf.convert._verify.sizes import admissible_sizes
from jaxtf.serialization import UnstableCustomCall, deserialize, export
from jaxtf.shapepoly import SymbolicScope, symbolic_shape

EPSILON = float(np.finfo(np.float32).eps)


def predict(x, w):
    return {"y": jnp.sin(x @ w), "best": x.argmax(axis=-1)}


def doubling(x):
    return jax.lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x)


def specs(*shapes, constraints=(), dtype="float32"):
    scope = SymbolicScope(tuple(constraints))
    return tuple(jax.ShapeDtypeStruct(symbolic_shape(text, scope=scope), dtype) for text in shapes)


NETWORK = specs("b, n", "n, 3", constraints=["n >= 2"])


@pytest.mark.slow
def test_a_function_is_the_same_in_every_way_at_three_sizes():
    report = verify(predict, *NETWORK)
    assert report.ok, str(report)
    assert {row.backend for row in report.rows} == set(backends.BACKENDS) - {"jax"}
    assert {row.outcome for row in report.rows} == {"same"}
    assert {tuple(row.sizes.items()) for row in report.rows} == {
        (("b", 1), ("n", 2)),
        (("b", 2), ("n", 3)),
        (("b", 3), ("n", 4)),
    }
    assert len(report.rows) == 8 * 3 * 2 * 2


def wrong(subject):
    """Eager mode with an error of a hundredth in its second result, at sizes other than the first."""
    runner = backends._eager(subject)

    def values(arguments):
        best, y = runner.values(arguments)
        return [best, y * (1 + 0.01 * (len(best) > 1))]

    def gradients(arguments, cotangents):
        raise tf.errors.InternalError(None, None, "lost")

    return backends.Runner(values, gradients)


@pytest.mark.slow
def test_what_differs_is_reported_with_its_place_sizes_and_size(monkeypatch):
    monkeypatch.setattr(backends, "BACKENDS", {**backends.BACKENDS, "wrong": wrong})
    monkeypatch.setattr("jaxtf.convert._verify.verify.BACKENDS", backends.BACKENDS)
    report = verify(predict, *NETWORK, backends=["wrong", "eager"], numbers=["regular"])
    assert not report.ok
    values = [row for row in report.rows if (row.backend, row.question) == ("wrong", "values")]
    assert [row.outcome for row in values] == ["same", "differs", "differs"]
    assert all(abs(row.error - 0.01 / EPSILON) < 0.01 / EPSILON for row in values[1:])
    assert [row.where for row in values[1:]] == ["result['y']"] * 2
    text = str(report)
    assert "wrong, values, b=2 n=3: differs: result['y']" in text
    assert "wrong, gradients, b=1 n=2: differs: InternalError: lost" in text
    assert verify(predict, *NETWORK, backends=["eager"]).ok


def with_cosines(exported):
    """An exported function that computes cosines in place of sines, at the same places of the user's program."""
    with jax_mlir.make_ir_context() as context:
        module = stablehlo.deserialize_portable_artifact(context, exported.mlir_module_serialized)
        assembly = module if isinstance(module, str) else module.operation.get_asm(enable_debug_info=True)
        assert "stablehlo.sine" in assembly
        changed = ir.Module.parse(assembly.replace("stablehlo.sine", "stablehlo.cosine"))
        data = stablehlo.serialize_portable_artifact_str(bytecode(changed), exported.stablehlo_version)
    return dataclasses.replace(exported, mlir_module_serialized=data)


def bytecode(module):
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def exporting_cosines(export):
    """`export`, of functions with cosines in place of sines."""
    return lambda *given, **options: lambda *args, **kwargs: with_cosines(export(*given, **options)(*args, **kwargs))


def put_in_a_fault(monkeypatch, backend):
    """Makes one backend compute cosines in place of sines."""
    if backend == "exported":
        monkeypatch.setattr(subject, "export", exporting_cosines(subject.export))
    elif backend == "artifact":
        monkeypatch.setattr(backends, "deserialize", lambda blob: with_cosines(deserialize(blob)))
    elif backend.startswith("graph_mode"):
        table = entries()
        monkeypatch.setitem(table, "stablehlo.sine", table["stablehlo.cosine"])
    else:
        monkeypatch.setattr(target, "export", exporting_cosines(target.export))


@pytest.mark.parametrize("backend", [backend for backend in backends.BACKENDS if backend != "jax"])
def test_a_fault_in_what_a_user_calls_is_seen_and_located(backend, monkeypatch):
    put_in_a_fault(monkeypatch, backend)
    report = verify(
        predict,
        *NETWORK,
        backends=[backend],
        sizes=[{"b": 2, "n": 3}],
        numbers=["regular"],
        gradients=False,
        locate=True,
    )
    [row] = report.rows
    assert (row.outcome, row.where) == ("differs", "result['y']")
    place = row.place
    assert place.line == f"{__file__}:{predict.__code__.co_firstlineno + 1}"
    assert (place.primitive, place.operations) == ("sin", ("stablehlo.sine",))
    assert place.expected.shape == place.found.shape == (2, 3)
    assert place.expected.mean != pytest.approx(place.found.mean)
    assert f"\n  first differs at {place.line}: sin (stablehlo.sine), by " in str(report)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16])
def test_zeros_and_another_sign_are_no_rounding_of_any_dtype(dtype, monkeypatch):
    right = backends.BACKENDS["eager"]

    def wrong(of_what):
        runner = right(of_what)
        zeros = lambda arguments: [tf.zeros_like(x) for x in runner.values(arguments)]  # noqa: E731
        negated = lambda *given: [-x for x in runner.gradients(*given)]  # noqa: E731
        return backends.Runner(zeros, negated)

    monkeypatch.setitem(backends.BACKENDS, "wrong", wrong)
    scaled = lambda x: (x.astype(jnp.float32) * 2).astype(dtype)  # noqa: E731
    report = verify(scaled, jax.ShapeDtypeStruct((8,), dtype), backends=["wrong", "exported"], numbers=["regular"])
    assert {row.outcome for row in report.rows if row.backend == "wrong"} == {"differs"}
    assert {row.outcome for row in report.rows if row.backend == "exported"} == {"same"}
    assert verify(scaled, jax.ShapeDtypeStruct((8,), dtype), backends=["wrong"], tolerance=1e9).ok


def test_what_jax_does_not_run_here_is_not_compared(tmp_path, capsys):
    artifact = bytes(export(jnp.sin, platforms=("cuda",))(jax.ShapeDtypeStruct((4,), jnp.float32)).serialize())
    report = verify(artifact, backends=["eager"])
    assert (report.rows[0].outcome, report.rows[0].where[:19]) == ("not compared", "JAX: PlatformError:")
    assert not report.ok
    assert "up to 1000 is the same)" in str(verify(artifact, backends=["eager"], tolerance=1000.0))
    (tmp_path / "sin.jaxtf").write_bytes(artifact)
    assert cli.main([str(tmp_path / "sin.jaxtf"), "--backend", "eager"]) == 1
    assert "eager  not compared" in capsys.readouterr().out


def test_graph_mode_is_convert_in_graph_mode(monkeypatch):
    def chosen(x):
        return jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos)

    report = verify(chosen, *specs("3"), backends=["eager", "graph_mode"])
    assert {(row.backend, row.outcome) for row in report.rows} == {("eager", "same"), ("graph_mode", "refused")}
    assert str(report).count("LoweringRuleMissing: 'chosen' has jax.lax.platform_dependent without a default") == 1
    # A decomposition by TensorFlow's own operation, which no other backend has.
    name, table = "custom_call.jaxtf.eigh", entries()
    broken = dataclasses.replace(table[name], emit=lambda op, x: [v + 1 for v in table_emit(op, x)])
    table_emit = table[name].emit
    monkeypatch.setitem(table, name, broken)
    report = verify(lambda x: jnp.linalg.eigvalsh(x @ x.T), *specs("2, 2"), backends=["graph_mode"], gradients=False)
    assert {row.outcome for row in report.rows} == {"differs"}


def test_what_is_refused_for_its_operations_is_refused_once():
    report = verify(jnp.linalg.eigvals, *specs("2, 2"), backends=["eager"], gradients=False)
    assert [(row.outcome, row.where[:12]) for row in report.rows] == [("refused", "LapackNeeded")]


def test_constraints_and_fixed_sizes_are_those_of_the_specifications():
    x, y = specs("2*b, c", "d, b", constraints=["c == 2", "b >= c + 1", "d == b - 1"])
    made = subject.make_subject(lambda x, y: (x[:6], y[:2]), (x, y))
    assert made.polymorphic_shapes() == ("(2*d + 2, 2)", "(d, d + 1)")
    assert made.polymorphic_constraints() == ["d - 2 >= 0"]
    assert verify(lambda x, y: (x[:6], y[:2]), x, y, backends=["eager"], gradients=False).ok


def test_a_function_without_reverse_mode_is_verified_by_its_values():
    report = verify(doubling, *specs("b"))
    assert report.ok
    assert {row.question for row in report.rows if row.outcome == "same"} == {"values"}
    [refused] = [row for row in report.rows if row.outcome == "refused"]
    assert refused.where.startswith("JAX: ValueError: Reverse-mode differentiation does not work")


@pytest.mark.parametrize("position", [0, -2])
def test_static_arguments_have_the_values_given(position):
    power = jax.jit(lambda n, x: x**n if isinstance(n, int) else 0 * x, static_argnums=position)
    report = verify(power, 3, *specs("b"), backends=["eager", "artifact", "graph_mode"], locate=True)
    assert report.ok
    assert {row.question for row in report.rows} == {"values", "gradients"}


@pytest.mark.parametrize("value", [tf.TensorSpec([3]), tf.ones(3)])
def test_specifications_of_tensorflow_are_refused(value):
    with pytest.raises(ConversionOptionError) as refused:
        verify(lambda x: x["a"], {"a": value})
    assert str(refused.value) == (
        f"verify needs specifications of JAX, and specs[0]['a'] is a {type(value).__name__}: {value!r:.80}\n"
        "  remedy: jax.ShapeDtypeStruct((3,), jnp.float32), open sizes by jaxtf.shapepoly.symbolic_shape"
    )


@pytest.mark.slow
def test_an_artifact_is_verified_with_the_gradients_that_it_carries():
    exported = export(predict, expand_linear_algebra=True)(*NETWORK)
    with_gradient = verify(exported.serialize(vjp_order=1), backends=["eager", "saved_model"])
    assert with_gradient.ok
    assert len(with_gradient.rows) == 2 * 3 * 2 * 2
    without = verify(exported.serialize(), backends=["eager"])
    assert without.ok
    assert without.rows[-1].where == "the artifact carries no VJP"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int32", "bool", "complex64", "bfloat16", "float64"])
def test_every_dtype_has_numbers(dtype):
    with jax.enable_x64(dtype == "float64"):
        report = verify(lambda x: (x, ~x if dtype == "bool" else x + x), *specs("b, 4", dtype=dtype))
    assert report.ok, str(report)


def test_integers_that_are_narrower_than_a_byte_are_compared():
    chosen = ["artifact", "eager", "graph", "graph_mode"]
    report = verify(lambda x: x + x, jax.ShapeDtypeStruct((4,), jnp.int4), backends=chosen)
    assert report.ok, str(report)


def test_a_vjp_with_arguments_that_have_no_derivative_is_compared():
    exported = export(lambda x, i: x * i)(*specs("3"), *specs("3", dtype="int32"))
    report = verify(exported.vjp(), backends=["artifact", "eager", "graph_mode"])
    assert report.ok, str(report)


def test_sizes_are_those_that_the_constraints_allow():
    exported = export(lambda x, y: x + y.sum())(*specs("2*b", "c", constraints=["b >= 3", "c <= b", "c == b - 1"]))
    assert admissible_sizes(exported, 4) == [{"c": 2}, {"c": 3}, {"c": 4}, {"c": 5}]


def test_a_size_that_constraints_fix_is_not_a_variable():
    exported = export(lambda x, y: x + y.sum())(*specs("2*b", "c", constraints=["b >= 3", "c == 2"]))
    assert admissible_sizes(exported, 2) == [{"b": 3}, {"b": 4}]


def test_sizes_that_cannot_be_found_are_to_be_said():
    large = specs("b", constraints=["b >= 1000"])
    with pytest.raises(ConversionOptionError, match="found no values of b that the constraints of 'sin' allow, among "):
        verify(jnp.sin, *large)
    assert verify(jnp.sin, *large, sizes=[{"b": 1000}], backends=["eager"]).ok


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([{"B": 2, "n": 2}], "there is no dimension variable 'B': 'sin' has the dimension variables 'b', 'n'"),
        (
            [{"b": 2}],
            "the sizes {'b': 2} do not include the dimension variable 'n': 'sin' has the dimension variables 'b', 'n'",
        ),
        (
            {"b": 2, "n": 3},
            "sizes must be a list of dicts, one for each run. Got: {'b': 2, 'n': 3}; 'sin' has the dimension variables "
            "'b', 'n'\n  remedy: sizes=[{'b': 2, 'n': 2}]",
        ),
        ([{"b": 2.5, "n": 2}], "the size of 'b' must be an integer. Got: 2.5"),
    ],
)
def test_sizes_of_another_form_are_refused(sizes, message):
    with pytest.raises(ConversionOptionError) as refused:
        verify(jnp.sin, *specs("b, n"), sizes=sizes, backends=["eager"])
    assert str(refused.value) == message


def test_sizes_of_a_function_without_dimension_variables_are_refused():
    with pytest.raises(ConversionOptionError, match="no dimension variable 'b': 'sin' has no dimension variables"):
        verify(jnp.sin, *specs("3"), sizes=[{"b": 2}])
    assert verify(jnp.sin, *specs("3"), sizes=[{}], backends=["eager"]).ok


@pytest.mark.parametrize(
    ("found", "expected", "error"),
    [
        (np.float32([1, 2]), np.float32([1, 2]), 0),
        (np.float32([1, 2 + 2 * EPSILON]), np.float32([1, 2]), 1),
        (np.float32([np.nan, 2]), np.float32([np.nan, 2]), 0),
        (np.float32([np.nan, 2]), np.float32([1, 2]), np.inf),
        (np.float32([np.inf]), np.float32([-np.inf]), np.inf),
        (np.float32([1]), np.float64([1]), np.inf),
        (np.float32([1]), np.float32([[1]]), np.inf),
        (np.int32([1]), np.int32([2]), np.inf),
        (np.float32([1e-9]), np.float32([0]), np.inf),
        (np.float32([]), np.float32([]), 0),
    ],
)
def test_differences_are_relative_to_epsilon_and_the_largest_value(found, expected, error):
    assert difference(found, expected) == error


MODEL = """
import jax.numpy as jnp
def predict(x, w):
    return jnp.tanh(x @ w)
def unstable(x):
    return jnp.sin(1e6 * x)
"""


@pytest.mark.slow
def test_the_command_verifies_functions_and_artifacts(tmp_path, monkeypatch, capsys):
    (tmp_path / "model_to_verify.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    shapes = ["f32[b, n]", "f32[n, 3]"]
    assert cli.main(["model_to_verify:predict", *shapes, "--constraint", "n >= 2", "--backend", "eager"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "predict, compared with JAX at b=1 n=2; b=2 n=3; b=3 n=4 "
        "(errors / (eps * max abs value); up to 256 is the same)"
    )
    (tmp_path / "sin.jaxtf").write_bytes(export(jnp.sin)(*specs("b")).serialize(vjp_order=1))
    assert cli.main(["sin.jaxtf", "--size", "b=7", "--backend", "saved_model", "--numbers", "regular", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["name"], data["ok"]) == ("sin", True)
    assert [(row["question"], row["sizes"]) for row in data["rows"]] == [("values", {"b": 7}), ("gradients", {"b": 7})]
    assert cli.main(["model_to_verify:predict", "float32[b, n]", " float32 [n, 3]", "--backend", "eager"]) == 0
    assert cli.main(["jax.numpy:sin", "bfloat16[b]", "--backend", "eager", "--values-only"]) == 0
    assert cli.main(["model_to_verify:unstable", "f32[4]", "--backend", "graph_mode", "--tolerance", "0"]) in (0, 1)


@pytest.mark.parametrize(
    ("arguments", "last"),
    [
        (
            ["--values-only"],
            "differs most: wrong, values of result['y'], by 1048576.0 * eps * max abs value, where up to 256 "
            "is the same; if the function magnifies rounding, --tolerance 1048576 allows it",
        ),
        (
            [],
            "differs most: wrong, gradients, by more than rounding (another shape, dtype or integer, a NaN, an "
            "infinity or an error): no --tolerance allows it",
        ),
        (["--values-only", "--tolerance", "1048576"], "wrong  same 1048576.0  -"),
    ],
)
def test_the_command_ends_with_what_differs_most_and_what_allows_it(arguments, last, tmp_path, monkeypatch, capsys):
    def wrong(subject):
        """Eager mode with a result that is larger by an eighth, and no gradients."""
        runner = backends._eager(subject)
        return backends.Runner(
            lambda arguments: [y.numpy() * np.float32(1.125) for y in runner.values(arguments)], lost
        )

    def lost(arguments, cotangents):
        raise tf.errors.InternalError(None, None, "lost")

    (tmp_path / "ones_to_verify.py").write_text("def f(x): return {'y': 0 * x + 1}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("jaxtf.convert._verify.verify.BACKENDS", {**backends.BACKENDS, "wrong": wrong})
    code = cli.main(["ones_to_verify:f", "f32[3]", "--backend", "wrong", *arguments])
    assert capsys.readouterr().out.splitlines()[-1] == last
    assert code == int(last.startswith("differs"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.jaxtf"], "jaxtf-verify: nowhere.jaxtf: No such file or directory"),
        (["no_such_module:f"], "jaxtf-verify: No module named 'no_such_module'"),
        (
            ["jax.numpy:sin", "float[3]"],
            "jaxtf-verify: a shape is a dtype with sizes, such as 'f32[b, 8]' or 'float32[b, 8]'. Got: 'float[3]'",
        ),
        (
            ["jax.numpy:sin", "f32[b]", "--size", "B=2"],
            "jaxtf-verify: there is no dimension variable 'B': 'sin' has the dimension variable 'b'",
        ),
        (
            ["jax.numpy:sin", "f32[3]", "--size", "b"],
            "jaxtf-verify: --size takes values by name, such as b=2,n=3. Got: 'b'",
        ),
        (
            ["jax.numpy:sin", "f32[3]", "--backend", "fast"],
            "jaxtf-verify: verify has no backend 'fast'; there are exported,",
        ),
        (
            ["jax.numpy:pi"],
            "jaxtf-verify: verify needs a JAX function, an Exported or the bytes of an artifact, found float",
        ),
        (["jax.numpy:sine"], "jaxtf-verify: jax.numpy has no 'sine'"),
        (
            ["json:dumps"],
            "jaxtf-verify: TypeError: dumps() missing 1 required positional argument: 'obj'\n  remedy: give a",
        ),
    ],
)
def test_what_cannot_be_verified_is_refused_in_a_line(arguments, message, capsys):
    assert cli.main(arguments) == 2
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize("target", ["mistaken", "mistaken.py", "mistaken.py:f"])
def test_a_target_without_a_function_is_distinguished_from_an_artifact(target, tmp_path, monkeypatch, capsys):
    (tmp_path / "mistaken.py").write_text("def f(x): return x\ndef g(x):\n    y = 2 * x\n    return y + lost\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main([target, "f32[2]"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"jaxtf-verify: {target.partition(':')[0]} is a {'Python file' if '.py' in target else 'module, or a folder'}, "
        "not an artifact; a function is given as MODULE:FUNCTION; there are f, g",
        '  remedy: jaxtf-verify mistaken:f "f32[b, 8]" ..., with a shape for each argument',
    ]


def test_a_bug_in_the_function_is_reported_with_its_class_and_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "with_a_bug.py").write_text("def g(x):\n    y = 2 * x\n    return y + lost\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert cli.main(["with_a_bug:g", "f32[2]"]) == 2
    assert capsys.readouterr().err == (
        f"jaxtf-verify: NameError: name 'lost' is not defined\n  {tmp_path}/with_a_bug.py:3, in g: return y + lost\n"
    )


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_command_says_how_it_is_used_without_tensorflow(option):
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['jaxtf-verify', {option!r}]\n"
        "try:\n    runpy.run_module('jaxtf.convert._verify.cli', run_name='__main__')\n"
        "finally:\n    print(sorted({'jax', 'jaxlib', 'tensorflow', 'numpy', 'islpy'} & sys.modules.keys()))\n"
    )
    start = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start < 0.3
    assert done.stdout.splitlines()[-1] == "[]"
    if option == "--help":
        assert "0  every backend that runs the function gives JAX's numbers" in done.stdout
        assert all(f"  {name}  " in done.stdout for name in backends.BACKENDS if name != "jax")
        assert set(BACKEND_NAMES) == set(backends.BACKENDS) - {"jax"}
    else:
        assert done.stdout.startswith("jaxtf-verify ")


@pytest.mark.slow
def test_ties_repeated_indices_and_special_numbers_are_among_the_numbers(monkeypatch):
    def scattered(x, i):
        return {"first": x.argmax(), "put": jnp.zeros(4).at[i].max(x), "sorted": jnp.argsort(x), "relu": jax.nn.relu(x)}

    def last_tie(subject):
        runner = backends._eager(subject)

        def values(arguments):
            _, *others = runner.values(arguments)
            return [np.int32(len(arguments[0]) - 1 - np.argmax(arguments[0][::-1])), *others]

        return backends.Runner(values, runner.gradients)

    monkeypatch.setattr(backends, "BACKENDS", {**backends.BACKENDS, "last tie": last_tie})
    monkeypatch.setattr("jaxtf.convert._verify.verify.BACKENDS", backends.BACKENDS)
    arguments = *specs("8"), *specs("8", dtype="int32")
    run = {
        kind: verify(scattered, *arguments, backends=["last tie", "eager", "graph_mode"], numbers=[kind])
        for kind in NUMBERS
    }
    assert run["regular"].ok
    found = [(row.backend, row.question) for row in run["ties"].rows if row.outcome == "differs"]
    assert found == [("last tie", "values")]
    assert "last tie, values, ties numbers: differs: result['first']" in str(run["ties"])
    special = {row.backend: row.outcome for row in run["special"].rows}
    # XLA's CPU backend, as TensorFlow has it, drops NaN in a maximum.
    assert special == {"last tie": "differs", "eager": "differs", "graph_mode": "same"}
    assert {row.question for row in run["special"].rows} == {"values"}
    with pytest.raises(ConversionOptionError, match=r"no numbers 'odd'; there are regular, ties, special"):
        verify(jnp.sin, *specs("2"), numbers=["odd"])


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "int4", "complex64", "bool"])
def test_numbers_are_what_they_are_called(kind, dtype):
    made = argument((4, 9), np.dtype(jnp.dtype(dtype)), 1, kind)
    assert (made.shape, made.dtype) == ((4, 9), jnp.dtype(dtype))
    wide = made.astype(np.complex128)
    assert len(np.unique(made[0].astype(np.complex64))) < 9 or kind == "regular"
    assert np.isnan(wide).any() == np.isinf(wide).any() == (kind == "special" and dtype not in ("int8", "int4", "bool"))


@pytest.mark.parametrize("option", [{"backends": "eager"}, {"numbers": "ties"}])
def test_one_text_is_not_a_list_of_names(option):
    [(name, text)] = option.items()
    with pytest.raises(
        ConversionOptionError, match=rf"{name} must be a list of names. Got: '{text}'\n  remedy: {name}="
    ):
        verify(jnp.sin, jax.ShapeDtypeStruct((2,), jnp.float32), **option)


def perturbed(monkeypatch, change):
    """`verify` of converted functions whose float results are changed."""
    made = backends._converted

    def converted(subject, **options):
        function = made(subject, **options)
        return lambda *args: tf.nest.map_structure(change, function(*args))

    monkeypatch.setattr(backends, "_converted", converted)


def test_an_error_of_others_is_no_refusal(monkeypatch):
    def fails(result):
        raise NotImplementedError("of a kernel")

    perturbed(monkeypatch, fails)
    report = verify(jnp.sin, *specs("b, 4"), backends=["eager", "graph"])
    assert {(row.outcome, row.where) for row in report.rows} == {("differs", "NotImplementedError: of a kernel")}
    assert not report.ok


@pytest.mark.parametrize("kind", [GraphModeUnsupported, NotImplementedError, UnstableCustomCall])
def test_a_refusal_at_one_size_hides_no_other(kind, monkeypatch):
    def change(result):
        if result.shape[0] == 1:
            raise kind("of one row")
        return result + 1

    perturbed(monkeypatch, change)
    report = verify(jnp.sin, *specs("b, 4"), backends=["eager"], gradients=False)
    assert not report.ok
    outcome = "differs" if kind is NotImplementedError else "refused"
    assert [(row.sizes["b"], row.outcome) for row in report.rows if row.numbers == "regular"] == [
        (1, outcome),
        (2, "differs"),
        (3, "differs"),
    ]


def test_a_refusal_for_one_reason_at_all_sizes_is_one_row(monkeypatch):
    def change(result):
        raise GraphModeUnsupported(f"of {result.dtype.name}")

    perturbed(monkeypatch, change)
    report = verify(jnp.sin, *specs("b, 4"), backends=["eager"])
    assert [(row.question, row.outcome, row.where) for row in report.rows] == [
        ("values", "refused", "GraphModeUnsupported: of float32")
    ]
    assert report.ok


@pytest.mark.slow(1)
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_gradients_that_the_tape_has_none_of_are_not_different(dtype):
    report = verify(lambda x: x * x, *specs("b, 4", dtype=dtype), backends=["eager", "artifact"])
    assert report.ok, str(report)
    found = {(row.backend, row.question): (row.outcome, row.where) for row in report.rows}
    reason = "TensorFlow's tape gives no gradient of args[0]: floats of 8 bits"
    assert found == {
        ("artifact", "values"): ("same", ""),
        ("artifact", "gradients"): ("same", ""),
        ("eager", "values"): ("same", ""),
        ("eager", "gradients"): ("refused", reason),
    }
    arguments = *specs("4", dtype=dtype), *specs("4")
    mixed = verify(lambda x, y: x.astype(y.dtype) * y, *arguments, backends=["eager"])
    assert {(row.question, row.outcome) for row in mixed.rows} == {("values", "same"), ("gradients", "same")}
    unused = verify(lambda x, y: x, *arguments, backends=["graph_mode"])
    assert unused.ok, str(unused)
    both = "TensorFlow's tape gives no gradient of args[0], args[1]: floats of 8 bits"
    assert {row.where for row in unused.rows} == {"", both}
    # TensorFlow's tape does not follow them out of a `tf.function`, and takes zeros for their cotangents.
    lost = verify(lambda y: ((y * y).astype(dtype), y * 3), *specs("4"), backends=["eager", "graph"])
    assert {(row.backend, row.outcome) for row in lost.rows if row.question == "gradients"} == {
        ("eager", "same"),
        ("graph", "differs"),
    }


def test_a_gradient_that_is_missing_differs(monkeypatch):
    perturbed(monkeypatch, tf.stop_gradient)
    report = verify(jnp.sin, *specs("b, 4"), backends=["eager"])
    assert {(row.outcome, row.where) for row in report.rows if row.question == "gradients"} == {
        ("differs", "AssertionError: TensorFlow gives no gradient of an argument of float32")
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *[
            ({"tolerance": number}, "tolerance must be a number of at least 0")
            for number in (-1.0, float("nan"), float("inf"), "1")
        ],
        ({"sizes": []}, "sizes must be a list of dicts"),
        ({"backends": []}, "backends must name at least one"),
        ({"backends": ["jax"]}, "no backend 'jax'"),
        ({"numbers": []}, "numbers must name at least one"),
    ],
)
def test_what_would_compare_nothing_is_refused(options, message):
    with pytest.raises(ConversionOptionError, match=message):
        verify(jnp.sin, jax.ShapeDtypeStruct(symbolic_shape("b"), jnp.float32), **options)
