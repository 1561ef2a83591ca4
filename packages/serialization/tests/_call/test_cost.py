"""What a call costs: what XLA says of the same program compiled by JAX, at each size."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtf.serialization import ArgumentMismatch, deserialize, export, save
from jaxtf.serialization._cli.program import main
from jaxtf.shapepoly import SymbolicScope, symbolic_shape


def layer(w, x):
    return jnp.tanh(x @ w) @ w.T


W = np.ones((32, 48), np.float32)


@pytest.fixture(scope="module")
def exported():
    b, _ = symbolic_shape("b, 32", scope=SymbolicScope(["b >= 2"]))
    return export(layer)(W, jax.ShapeDtypeStruct((b, 32), jnp.float32))


@pytest.fixture(scope="module")
def model(exported, tmp_path_factory):
    path = tmp_path_factory.mktemp("cost") / "model.jaxtf"
    save(path, exported, W)
    return str(path)


@pytest.mark.parametrize("size", [4, 64])
def test_it_is_what_xla_says_of_the_function_itself(exported, size):
    cost = exported.cost(b=size)
    compiled = jax.jit(layer).lower(W, jax.ShapeDtypeStruct((size, 32), jnp.float32)).compile()
    memory, counted = compiled.memory_analysis(), compiled.cost_analysis()
    assert cost.sizes == {"b": size}
    assert cost.flops == pytest.approx(counted["flops"], rel=0.01)
    assert cost.argument_bytes == memory.argument_size_in_bytes == W.nbytes + 32 * 4 * size
    assert cost.result_bytes == memory.output_size_in_bytes == 32 * 4 * size
    assert cost.temporary_bytes <= memory.temp_size_in_bytes + 2**12
    assert deserialize(exported.serialize()).cost(b=size) == cost


@pytest.mark.parametrize("sizes", [{}, {"b": 0}, {"b": 1.5}, {"b": 4, "c": 4}])
def test_sizes_are_those_of_the_variables(exported, sizes):
    with pytest.raises(ArgumentMismatch, match=r"the cost of 'layer' needs a size from 1 on for each of b; found"):
        exported.cost(**sizes)


def test_sizes_that_the_constraints_do_not_allow_are_refused(exported):
    with pytest.raises(ArgumentMismatch, match="b >= 2"):
        exported.cost(b=1)


def test_the_command_prints_a_row_for_each_size_and_how_they_grow(model, capsys):
    assert main(["cost", "--size", "b=2,8,64", model]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"parameters: {W.size:,}, {W.nbytes:,} bytes"
    assert lines[1] == "compiled for: cpu"
    assert lines[3].split()[:2] == ["b", "flops"]
    assert [line.split()[0] for line in lines[4:]] == ["2", "8", "64", "grows"]
    assert lines[7].split()[1] == "b^1"
    assert main(["cost", "--json", "--size", "b=8,64", model]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == {"count": W.size, "bytes": W.nbytes}
    assert [cost["sizes"] for cost in found["costs"]] == [{"b": 8}, {"b": 64}]
    assert found["costs"][1]["flops"] == 8 * found["costs"][0]["flops"]
    assert found["growth"]["b"]["result_bytes"] == 1


@pytest.mark.parametrize("size", ["b", "b=", "b=x", "b=0", "=3"])
def test_sizes_that_cannot_be_read_are_usage_errors(model, capsys, size):
    assert main(["cost", "--size", size, model]) == 2
    assert "write NAME=SIZES, such as b=8 or b=8,64,512" in capsys.readouterr().err


def test_other_sizes_than_those_of_the_file_are_an_error_about_it(model, capsys):
    assert main(["cost", "--size", "c=3", model]) == 2
    assert capsys.readouterr().err.startswith(f"jaxtf-artifact: {model}: the cost of 'layer' needs a size from 1 on")
