"""The table of what compiles for accelerators that are not there says what was found, and holds it to its list."""

import sys

import pytest

from .aot_table import CALL_TF, CPU, FOUR_DEVICES, Row, page, unexpected
from .aot_targets import TARGETS

POOLING = "max pooling SAME"
REFUSED = TARGETS["TPU v5e"].refused[POOLING]


def row(battery="battery", program="sin", target="TPU v5e", parts=("function", "vjp"), **refused):
    return Row(battery, program, target, parts, refused, 0.25)


def test_what_compiles_and_what_is_listed_is_expected():
    rows = [row(), row(target=CPU), row(program=POOLING, vjp=f"INVALID: {REFUSED}: 3"), row(FOUR_DEVICES, "shard_map")]
    assert list(unexpected(rows)) == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (row(function="no such custom call"), "sin, function, TPU v5e: no such custom call"),
        (row(target=CPU, vjp="crashed"), "sin, vjp, this CPU: crashed"),
        (row(CALL_TF, "gelu", "H100 (sm_90)", vjp="ptxas"), "gelu, vjp, H100 (sm_90): ptxas"),
        (row(program=POOLING), f"{POOLING}, TPU v5e: compiles, or is refused for another reason than: {REFUSED}"),
        (row(program=POOLING, vjp="other"), f"{POOLING}, TPU v5e: compiles, or is refused for another"),
    ],
)
def test_a_surprise_is_named(found, expected):
    [surprise] = unexpected([row(), found])
    assert surprise.startswith(expected)


def test_the_page_counts_and_quotes(monkeypatch):
    monkeypatch.setattr(sys.modules[page.__module__], "version", lambda name: f"<{name}>")
    rows = [row(), row(program=POOLING, vjp="select | scatter\nmore"), row(program="floor", parts=("function",))]
    text = page(rows, minutes=3.2)
    assert "| TPU v5e | 3 of 3 | 1 of 2 | - | - | - | 0.25 |" in text
    assert f"| {POOLING} | vjp | TPU v5e | `select / scatter` |" in text
    assert "JAX <jax>" in text
    assert "in 3 minutes" in text
