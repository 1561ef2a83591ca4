"""How an exported function looks in a session and in a notebook."""

import jax
import jax.numpy as jnp

from jaxtf.serialization import deserialize, export
from jaxtf.shapepoly import SymbolicScope, symbolic_shape


def scaled(x, *, by):
    return x * by["<b>"]


def exported():
    (size,) = symbolic_shape("b", scope=SymbolicScope(["b >= 2"]))
    specs = jax.ShapeDtypeStruct((size,), jnp.float32), jax.ShapeDtypeStruct((), jnp.float32)
    return export(scaled, platforms=("cpu", "tpu"))(specs[0], by={"<b>": specs[1]})


def test_its_representation_is_one_line_also_when_it_was_read():
    text = "Exported(scaled: (float32[b], float32[]) -> (float32[b]) for cpu, tpu)"
    assert repr(exported()) == str(exported()) == text
    assert repr(deserialize(exported().serialize())) == text


def test_of_many_arguments_the_line_has_the_first_and_the_last():
    many = export(sum)([jnp.float32(0)] * 100)
    first, last = "float32[], " * 8, ", ".join(["float32[]"] * 8)
    assert repr(many) == f"Exported(sum: ({first}... 84 more ..., {last}) -> (float32[]) for cpu)"


def test_a_notebook_shows_arguments_results_constraints_and_platforms_escaped():
    assert exported()._repr_html_() == (
        "<table><caption>scaled</caption>"
        "<tr><th>args[0]</th><td>float32[b]</td></tr>"
        "<tr><th>kwargs[&#x27;by&#x27;][&#x27;&lt;b&gt;&#x27;]</th><td>float32[]</td></tr>"
        "<tr><th>result</th><td>float32[b]</td></tr>"
        "<tr><th>constraints</th><td>b &gt;= 2</td></tr>"
        "<tr><th>platforms</th><td>cpu, tpu</td></tr></table>"
    )
