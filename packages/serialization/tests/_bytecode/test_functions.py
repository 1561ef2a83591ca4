"""The functions of modules, against what MLIR reads, and hostile encodings of them."""

import contextlib
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxtf.serialization import ArtifactError, VersionError
from jaxtf.serialization._artifact.reader import read_payload
from jaxtf.serialization._artifact.trailer import split_trailer
from jaxtf.serialization._bytecode import functions as functions_module
from jaxtf.serialization._bytecode.functions import find_recursion, module_functions
from jaxtf.serialization._bytecode.portable import Attributes, Frame, stablehlo_facts
from jaxtf.serialization._record.stablehlo import parse_stablehlo_version

CORPUS = Path(__file__).parent.parent / "artifacts"
RELEASES = sorted(path.name for path in CORPUS.iterdir() if path.is_dir() and any(path.glob("*.bin")))


def modules(release):
    """Every module of a release's artifacts, with the name of the file."""
    for path in sorted((CORPUS / release).glob("*.bin")):
        table = read_payload(split_trailer(path.read_bytes()).payload)
        while table is not None:
            yield path.name, bytes(table.mlir_module_serialized)
            table = table.vjp


@pytest.mark.parametrize("release", RELEASES)
def test_functions_are_those_that_mlir_reads(release):
    pytest.importorskip("jax")
    from jax.extend.mlir import ir

    from jaxtf.serialization._program.portable_artifact import current_stablehlo_version, deserialize_module

    written = parse_stablehlo_version(stablehlo_facts(next(modules(release))[1]).stablehlo_version)
    if written > parse_stablehlo_version(current_stablehlo_version()):
        pytest.skip("newer than this jaxlib reads")

    def text(type_):
        return "token" if "token" in str(type_) else str(ir.RankedTensorType(type_))

    for name, module in list(modules(release))[::7]:
        parsed = deserialize_module(module)
        expected = [op for op in parsed.body.operations if op.operation.name == "func.func"]
        found, recursion = module_functions(module)
        assert [function.name for function in found] == [
            ir.StringAttr(op.attributes["sym_name"]).value for op in expected
        ]
        assert recursion() is None, name
        for function, op in zip(found, expected, strict=True):
            type_ = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
            for ours, theirs in ((function.inputs, type_.inputs), (function.outputs, type_.results)):
                assert [as_mlir(value) for value in ours] == [text(each) for each in theirs], name
            assert function.block_count == len(op.regions[0].blocks) == 1


_MLIR = {
    **{"bool": "i1", "complex64": "complex<f32>", "complex128": "complex<f64>", "bfloat16": "bf16"},
    **{f"int{width}": f"i{width}" for width in (2, 4, 8, 16, 32, 64)},
    **{f"uint{width}": f"ui{width}" for width in (2, 4, 8, 16, 32, 64)},
    **{f"float{width}": f"f{width}" for width in (16, 32, 64)},
    **{"float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2", "float8_e4m3fnuz": "f8E4M3FNUZ"},
    **{"float8_e5m2fnuz": "f8E5M2FNUZ", "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3": "f8E4M3"},
    **{"float8_e3m4": "f8E3M4", "float8_e8m0fnu": "f8E8M0FNU", "float4_e2m1fn": "f4E2M1FN"},
}


def as_mlir(value):
    if value.dtype == "token":
        return "token"
    sizes = ["?" if size is None else str(size) for size in value.shape]
    return f"tensor<{'x'.join([*sizes, _MLIR[value.dtype]])}>"


@pytest.mark.parametrize("release", RELEASES)
def test_no_call_is_missed_by_looking_for_its_bytes(release):
    calls = 0
    for name, module in modules(release):
        reader = functions_module._Module(module)
        for function in reader.functions:
            exactly = reader.calls(function)
            assert exactly <= reader.may_call(function), name
            calls += len(exactly)
    assert calls > 50


ADDED = """^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %s = stablehlo.add %p, %q : tensor<f32>
  stablehlo.return %s : tensor<f32>"""
COMPARED = """^bb0(%p: tensor<f32>, %q: tensor<f32>):
  %s = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %s : tensor<i1>"""
CALLED = """%s = func.call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>
  stablehlo.return %s : tensor<4xf32>"""
UNCHANGED = "stablehlo.return %x : tensor<4xf32>"

# Operations with regions, some of which the bytecode keeps in a section of their own, and the functions that they call.
WITH_REGIONS = {
    "select_and_scatter": (
        f"""%r = "stablehlo.select_and_scatter"(%x, %y, %z) <{{window_dimensions = array<i64: 2>,
        window_strides = array<i64: 2>}}> ({{ {COMPARED} }}, {{ {ADDED} }}) :
        (tensor<4xf32>, tensor<2xf32>, tensor<f32>) -> tensor<4xf32>""",
        set(),
    ),
    "reduce_window": (
        f"""%r = "stablehlo.reduce_window"(%x, %z) <{{window_dimensions = array<i64: 1>}}> ({{ {ADDED} }}) :
        (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>""",
        set(),
    ),
    "sort": (
        f"""%r = "stablehlo.sort"(%x) <{{dimension = 0 : i64}}> ({{ {COMPARED} }}) :
        (tensor<4xf32>) -> tensor<4xf32>""",
        set(),
    ),
    "if": (
        f"""%r = "stablehlo.if"(%b) ({{ {CALLED} }}, {{ {UNCHANGED} }}) : (tensor<i1>) -> tensor<4xf32>""",
        {"g"},
    ),
    "case": (
        f"""%r = "stablehlo.case"(%i) ({{ {UNCHANGED} }}, {{ {UNCHANGED} }}, {{ {CALLED} }}) :
        (tensor<i32>) -> tensor<4xf32>""",
        {"g"},
    ),
    "while": (
        f"""%r = "stablehlo.while"(%x) ({{ ^bb0(%v: tensor<4xf32>): stablehlo.return %b : tensor<i1> }},
        {{ ^bb0(%v: tensor<4xf32>): {CALLED} }}) : (tensor<4xf32>) -> tensor<4xf32>""",
        {"g"},
    ),
}


@pytest.mark.parametrize("name", WITH_REGIONS)
def test_calls_in_and_after_the_regions_of_an_operation_are_found(name):
    pytest.importorskip("jax")
    from jax.extend.mlir import ir
    from jax.interpreters import mlir

    from jaxtf.serialization._program.portable_artifact import current_stablehlo_version, serialize_module

    operation, inside = WITH_REGIONS[name]
    text = f"""func.func @main(
        %x: tensor<4xf32>, %y: tensor<2xf32>, %z: tensor<f32>, %b: tensor<i1>, %i: tensor<i32>) -> tensor<4xf32> {{
      {operation}
      %last = func.call @h(%r) : (tensor<4xf32>) -> tensor<4xf32>
      return %last : tensor<4xf32>
    }}
    func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> {{ return %x : tensor<4xf32> }}
    func.func private @h(%x: tensor<4xf32>) -> tensor<4xf32> {{ return %x : tensor<4xf32> }}"""
    with mlir.make_ir_context():
        module = serialize_module(ir.Module.parse(text), current_stablehlo_version())
    reader = functions_module._Module(module)
    [main] = [function for function in reader.functions if function.name == "main"]
    assert reader.calls(main) == {"h"} | inside


def test_bodies_are_not_read_where_nothing_looks_like_a_circle(monkeypatch):
    """They are long, and read operation by operation. JAX 0.4.30 wrote a bytecode in which nothing else tells."""
    read, count = [], 0
    calls = functions_module._Module.calls
    monkeypatch.setattr(
        functions_module._Module, "calls", lambda self, function: read.append(function) or calls(self, function)
    )
    for release in set(RELEASES) - {"0.4.30"}:
        for _, module in modules(release):
            found, recursion = module_functions(module)
            assert recursion() is None
            count += len(found)
    assert count > 1000
    assert len(read) < 0.003 * count


@pytest.mark.parametrize("number", [0, 1, 5, 127, 128, 2**14, 2**56 - 1])
def test_every_form_of_a_number_is_read_as_that_number(number):
    forms = list(functions_module._encodings(number))
    assert len(set(forms)) == len(forms) == 10 - max(1, -(-number.bit_length() // 7))
    for form in forms:
        assert functions_module._number_at(b"\1" + form + b"\1", 1) == (number, 1 + len(form))
        assert functions_module.Reader(memoryview(form), 0, "test").number() == number


def test_a_second_block_is_counted():
    _, module = next(modules(RELEASES[-1]))
    main = module_functions(module)[0][0]
    damaged = bytearray(module)
    assert damaged[main._body.start] == 3  # the number 1, in one byte
    damaged[main._body.start] = 5
    assert module_functions(bytes(damaged))[0][0].block_count == 2


@pytest.mark.parametrize("release", [RELEASES[0], RELEASES[-1]])
def test_damaged_modules_are_refused_or_read(release):
    _, module = next(modules(release))
    for position in range(0, len(module), 3):
        for bit in (0, 3, 7):
            damaged = bytearray(module)
            damaged[position] ^= 1 << bit
            with contextlib.suppress(ArtifactError, VersionError):
                reader = functions_module._Module(bytes(damaged))
                find_recursion(reader.functions, reader.may_call, reader.calls)
                for function in reader.functions:
                    assert reader.calls(function) <= reader.may_call(function)


def test_circles_are_found_where_they_are_and_nowhere_else():
    def found(**calls):
        each = [functions_module.ModuleFunction(name, False, (), (), 1, None) for name in calls]
        return find_recursion(each, lambda _: set(calls), lambda function: set(calls[function.name]))

    assert found(main="", f="main") is None
    assert found(main=("f", "g"), f=("h",), g=("h",), h=()) is None
    assert found(f=("f",)) == "f -> f"
    assert found(main=("f",), f=("g",), g=("h",), h=("f",)) == "f -> g -> h -> f"


graphs = st.integers(1, 14).flatmap(
    lambda count: st.lists(st.sets(st.integers(0, count - 1), max_size=3), min_size=count, max_size=count)
)


@given(calls=graphs, more=st.lists(st.sets(st.integers(0, 13), max_size=2), min_size=14, max_size=14))
def test_circles_are_those_of_the_calls_whatever_else_looks_like_one(calls, more):
    each = [functions_module.ModuleFunction(str(number), False, (), (), 1, None) for number in range(len(calls))]
    exactly = {str(number): {str(callee) for callee in callees} for number, callees in enumerate(calls)}
    perhaps = {name: exactly[name] | {str(callee) for callee in more[int(name)]} for name in exactly}
    found = find_recursion(each, lambda f: perhaps[f.name], lambda f: exactly[f.name])
    reached = {name: set(callees) for name, callees in exactly.items()}
    for middle, further in reached.items():  # Warshall
        for callees in reached.values():
            callees.update(further if middle in callees else ())
    assert (found is None) == all(name not in callees for name, callees in reached.items())
    if found is not None:
        path = found.split(" -> ")
        assert path[0] == path[-1]
        assert all(callee in exactly[caller] for caller, callee in itertools.pairwise(path))


def test_a_long_chain_of_calls_takes_no_longer_than_its_length():
    names = [str(number) for number in range(100_000)]
    each = [functions_module.ModuleFunction(name, False, (), (), 1, None) for name in names]
    assert find_recursion(each, lambda function: {str(int(function.name) + 1)}, None) is None


def test_what_is_not_a_module_is_refused():
    with pytest.raises(ArtifactError):
        module_functions(b"ML\xefR")


def test_a_place_that_is_in_itself_is_refused_before_mlir_which_does_not_end_at_it():
    jax = pytest.importorskip("jax")
    array = jax.ShapeDtypeStruct((3,), "float32")
    module = bytes(jax.export.export(jax.jit(jax.numpy.sin))(array).mlir_module_serialized)
    attributes = Attributes(Frame(module))
    # A name with a place, each by a number of one byte.
    number = next(n for n in range(60) if attributes.has_code(n, "builtin", 14))
    content = attributes.content(number)
    last = content.start + len(content.view) - 1
    with pytest.raises(ArtifactError, match=f"a place, attribute {number}, is in itself"):
        module_functions(module[:last] + bytes([number << 1 | 1]) + module[last + 1 :])
