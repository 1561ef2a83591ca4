"""Writes docs/calltf_operations.md: the operations that have a form for symbolic sizes. `test_interpreter.py` holds it.

python packages/calltf/tests/operations_table.py
"""

import inspect
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from jaxtf.calltf._operations import RULES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "calltf_operations.md"

# Those that TensorFlow 2.21 does not compile for a CPU, whatever the sizes.
NOT_COMPILED = ("EuclideanNorm", "InvGrad", "ResizeNearestNeighborGrad", "TopK")


def page() -> str:
    """The page."""
    families: dict[str, dict[Any, list[str]]] = {}
    for operation, rule in RULES.items():
        families.setdefault(rule.__module__, {}).setdefault(rule, []).append(operation)
    rows = []
    for family in sorted(families):
        about = " ".join((sys.modules[family].__doc__ or "").split("\n\n")[0].split())
        rows += ["", f"## {family.rpartition('.')[2].capitalize()}", "", about, ""]
        rows += ["| operations | for symbolic sizes |", "| --- | --- |"]
        for rule, operations in families[family].items():
            text = " ".join((inspect.getdoc(rule) or "").split())
            rows.append(f"| {', '.join(f'`{name}`' for name in sorted(operations))} | {text} |")
    return "\n".join(
        [
            "# `call_tf`: operations with symbolic sizes",
            "",
            f"The {len(RULES)} operations of TensorFlow that may have operands or results of symbolic shapes in a",
            "staged call, and the conditions for each. Constants, calls, branches (`If`, `Case`), loops (`While`) and",
            "reads of variables are followed too. Any other operation is refused there, with an error that",
            "names it; it needs no entry where all its shapes are constant. TensorFlow 2.21 compiles",
            f"{', '.join(f'`{name}`' for name in NOT_COMPILED)} at no size:",
            "these are of use with `call_tf_graph=True` alone.",
            "Made by `python packages/calltf/tests/operations_table.py`; do not edit.",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
