"""Writes docs/calltf_operations.md: the operations that have a form for symbolic sizes. `test_interpreter.py` holds it.

python packages/calltf/tests/operations_table.py
"""

import inspect
import os
from collections import defaultdict
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from jaxtf.calltf._symbolic_ops import RULES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "calltf_operations.md"


def page() -> str:
    """The page."""
    of_rule = defaultdict(list)
    for operation, rule in RULES.items():
        of_rule[rule].append(operation)
    rows = []
    for rule, operations in of_rule.items():
        text = " ".join((inspect.getdoc(rule) or "").split())
        rows.append(f"| {', '.join(f'`{name}`' for name in sorted(operations))} | {text} |")
    return "\n".join(
        [
            "# `call_tf`: operations with symbolic sizes",
            "",
            f"The {len(RULES)} operations of TensorFlow that may have operands or results of symbolic shapes in a",
            "staged call, and what holds for each. Constants, calls, branches (`If`, `Case`), loops (`While`) and",
            "reads of variables are followed too. Any other operation is refused there by its name; it needs no entry",
            "where all its shapes are constant.",
            "Made by `python packages/calltf/tests/operations_table.py`; do not edit.",
            "",
            "| operations | for symbolic sizes |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page())
