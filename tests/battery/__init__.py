"""The battery: shape-polymorphic JAX functions, one entry each, grouped by family.

`BATTERY` is the whole table, by name. `tests/test_battery.py` runs it with `jaxtf`, `tools/coverage.py` also with
`jax.export`.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import contractions, control, decisions, indexing, numerics, shapes
from .entry import Entry

FAMILIES: Mapping[str, Mapping[str, Entry]] = {
    "shapes": shapes.ENTRIES,
    "indexing": indexing.ENTRIES,
    "control": control.ENTRIES,
    "contractions": contractions.ENTRIES,
    "numerics": numerics.ENTRIES,
    "decisions": decisions.ENTRIES,
}

BATTERY: Mapping[str, Entry] = {name: entry for entries in FAMILIES.values() for name, entry in entries.items()}

assert len(BATTERY) == sum(map(len, FAMILIES.values())), "two entries of one name"
