"""Says what a function was converted to: in the log, and in a folder.

The logger `jaxtf.convert` reports each module and the attributes of its op: a line at level INFO, the text of the
module at level DEBUG. Where the environment variable `JAXTF_DUMP_DIR` names a folder, each module is written there
once, as `NAME-DIGEST.mlir` (text; where there is no JAX to print it, `.mlirbc`, as it is) next to `NAME-DIGEST.json`,
the attributes. Read for each conversion; writing nothing is the default.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from pathlib import Path
from typing import Any

from jaxtf.serialization import Exported

__all__ = ["DUMP_VARIABLE", "LOGGER", "record_module"]

LOGGER = logging.getLogger("jaxtf.convert")

DUMP_VARIABLE = "JAXTF_DUMP_DIR"


def record_module(exported: Exported) -> None:
    """Logs a module that becomes a TensorFlow op, and writes it to the folder that the environment names.

    Raises:
      OSError: The folder cannot be written to.
    """
    folder = os.environ.get(DUMP_VARIABLE)
    if not folder and not LOGGER.isEnabledFor(logging.INFO):
        return
    attributes = _attributes(exported)
    described = ", ".join(f"{name}={value}" for name, value in attributes.items())
    LOGGER.info("converted %s: %s", exported.fun_name, described)
    if LOGGER.isEnabledFor(logging.DEBUG):
        LOGGER.debug("module of %s:\n%s", exported.fun_name, _text(exported) or "(no JAX here to print it)")
    if folder:
        _dump(exported, attributes, Path(folder))


def _attributes(exported: Exported) -> dict[str, Any]:
    """What the op says of the module, and what its arguments and results are."""
    return {
        "calling_convention_version": exported.calling_convention_version,
        "stablehlo_version": exported.stablehlo_version,
        "platforms": list(exported.platforms),
        "disabled_checks": list(map(str, exported.disabled_safety_checks)),
        "arguments": dict(zip(exported.in_names, map(str, exported.in_avals), strict=True)),
        "kept_arguments": list(exported.module_kept_var_idx),
        "results": dict(zip(exported.out_names, map(str, exported.out_avals), strict=True)),
        "module_bytes": len(exported.mlir_module_serialized),
    }


def _text(exported: Exported) -> str | None:
    """The module as text; None where there is no JAX."""
    try:
        return exported.mlir_module()
    except ImportError:
        return None


def _dump(exported: Exported, attributes: dict[str, Any], folder: Path) -> None:
    module = exported.mlir_module_serialized
    name = re.sub(r"\W+", "_", exported.fun_name) or "function"
    stem = f"{name}-{hashlib.sha256(module).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps(attributes, indent=2) + "\n", encoding="utf-8")
    text = _text(exported)
    if text is None:
        (folder / f"{stem}.mlirbc").write_bytes(module)
    else:
        (folder / f"{stem}.mlir").write_text(text, encoding="utf-8")
