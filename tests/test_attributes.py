"""No attribute of an operation is dropped in silence: an entry reads it, or it is listed here with the reason."""

import inspect
from collections import defaultdict

import jax
import pytest
from jaxlib.mlir.dialects import chlo, stablehlo

from jaxtf.convert._graph.table import entries as graph_entries
from jaxtf.serialization import lift
from jaxtf.serialization._lift.table import entries as lift_entries
from jaxtf.serialization._program import parse

from .specification import CASES
from .test_specification import eager

ENTRIES = {"lift": lift_entries, "eager": graph_entries}


def trace_lifted(case):
    with jax.enable_x64(True):
        jax.eval_shape(lift(case.text), *case.arguments)


RUN = {"lift": trace_lifted, "eager": eager}

ACCURACY = "a wish for the compiler: TensorFlow has one implementation"
HINT = "it allows a faster implementation, and changes no result"
UNREAD = {
    ("lift", "name"): "of a composite: it is its decomposition, unless StableHLO wrote it for an operation",
    ("lift", "composite_attributes"): "given to the entry that the composite has by its name, as its attributes",
    ("lift", "known_expanding_dimensions"): HINT,
    ("lift", "known_nonexpanding_dimensions"): HINT,
    ("lift", "dimensions"): "of `map`: all of them, in order (C3)",
    ("lift", "is_stable"): "of `top_k`, since JAX 0.12: `jax.lax.top_k` is stable",
    ("eager", "composite_attributes"): "as for lift",
    ("eager", "name"): "as for lift",
    ("eager", "known_expanding_dimensions"): HINT,
    ("eager", "known_nonexpanding_dimensions"): HINT,
    ("eager", "dimensions"): "as for lift",
    ("eager", "result_accuracy"): ACCURACY,
    ("eager", "precision_config"): "documented: TensorFlow has no such choice",
    ("eager", "algorithm"): "documented: TensorFlow has no such choice",
    ("eager", "indices_are_sorted"): HINT,
    ("eager", "is_stable"): "sorts here are stable always",
}


class Recording(dict):
    """Attributes of an operation that note which of them are read."""

    def __init__(self, attributes, read):
        super().__init__(attributes)
        self._read = read

    def __getitem__(self, name):
        self._read.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self._read.add(name)
        return super().get(name, default)


def is_attribute(value):
    """Whether a property of an operation in MLIR's bindings is an attribute; the others are operands."""
    return isinstance(value, property) and "self.attributes[" in inspect.getsource(value.fget)


def attributes_of_dialects():
    """Operation -> its attributes, as the bindings have them."""
    found = {}
    for dialect in (stablehlo, chlo):
        for class_name, adaptor in vars(dialect).items():
            if class_name.endswith("Adaptor") and hasattr(adaptor, "OPERATION_NAME"):
                name = adaptor.OPERATION_NAME
                found[name] = {key for key, value in vars(adaptor).items() if is_attribute(value)}
    return found


@pytest.mark.slow(1)
@pytest.mark.parametrize("backend", ENTRIES)
def test_what_no_entry_reads_is_listed(backend, monkeypatch):
    read, of_module = defaultdict(set), parse._Reader._attributes
    monkeypatch.setattr(parse._Reader, "_attributes", lambda self, op: Recording(of_module(self, op), read[op.name]))
    for case in CASES:
        if backend not in case.differs:
            RUN[backend](case)
    entries = ENTRIES[backend]()
    unread = {
        (name, attribute)
        for name, attributes in attributes_of_dialects().items()
        if name in entries and not entries[name].reason
        for attribute in attributes - read[name]
    }
    assert {pair for pair in unread if (backend, pair[1]) not in UNREAD} == set()
    listed = {attribute for kind, attribute in UNREAD if kind == backend}
    assert listed - {attribute for _, attribute in unread} <= {"is_stable"}, "listed, but read"
