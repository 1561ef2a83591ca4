"""Makes the corpus: artifacts that a JAX release writes, and the numbers that it computes from them.

`python generate.py write FOLDER`, inside an environment with one of `RELEASES`, exports every
program of `programs.py` and writes into FOLDER/<release>:

- `<program>.bin`, the artifact;
- `values.npz`, the leaves of arguments and expected results, as `<program>/<order>/in/<n>` and
  `.../out/<n>`; order 0 is the function, order 1 its VJP, and so on. Dtypes that NumPy cannot
  store are stored as bytes; random keys as their data;
- `manifest.json`, what was written, under which versions, and why the rest could not be.

`python generate.py compare FOLDER FROZEN` holds a regenerated release against the frozen one:
the programs, the reasons and the numbers must be equal. The bytes need not be: source
locations hold paths.

Runs on Python 3.10 and JAX 0.4.30. The frozen files are never rewritten.
"""

from __future__ import annotations

import os
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import json
import platform
import struct
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["RELEASES", "compare", "decoded", "stored_number", "write"]

# Python, and what is installed with it. JAX 0.4.30 stands at the beginning: the first with jax.export.
RELEASES = {
    "0.4.30": ("3.10", ("jax==0.4.30", "jaxlib==0.4.30", "numpy==1.26.4", "scipy==1.13.1", "ml_dtypes==0.5.4")),
    "0.4.38": ("3.10", ("jax==0.4.38", "jaxlib==0.4.38", "numpy==2.2.6", "scipy==1.15.3", "ml_dtypes==0.5.4")),
    "0.6.2": ("3.10", ("jax==0.6.2", "jaxlib==0.6.2", "numpy==2.2.6", "scipy==1.15.3", "ml_dtypes==0.5.4")),
    "0.8.1": ("3.11", ("jax==0.8.1", "jaxlib==0.8.1", "numpy==2.4.6", "scipy==1.17.1", "ml_dtypes==0.6.0")),
    "0.8.2": ("3.11", ("jax==0.8.2", "jaxlib==0.8.2", "numpy==2.4.6", "scipy==1.17.1", "ml_dtypes==0.6.0")),
    "0.9.0": ("3.12", ("jax==0.9.0", "jaxlib==0.9.0", "numpy==2.4.6", "scipy==1.17.1", "ml_dtypes==0.6.0")),
    "0.10.2": ("3.12", ("jax==0.10.2", "jaxlib==0.10.2", "numpy==2.4.6", "scipy==1.17.1", "ml_dtypes==0.6.0")),
    "0.12.0.1": ("3.12", ("jax==0.12.0.1", "jaxlib==0.12.0.1", "numpy==2.4.6", "scipy==1.17.1", "ml_dtypes==0.6.0")),
}
ALWAYS_INSTALLED = ("flatbuffers==25.12.19", "absl-py==2.3.1")  # jax.export needs them and does not say so

# What numpy.savez keeps by itself.
_NATIVE = frozenset("?bhilqpBHILQPefdFD")


def write(folder: Path, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Writes the corpus of the installed release into `folder`; returns its manifest."""
    import jax
    import jaxlib
    from programs import PROGRAMS

    # Source locations name the file, not where it stood.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    folder = folder / jax.__version__
    folder.mkdir(parents=True, exist_ok=True)
    manifest: dict[str, Any] = {
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "programs": {},
    }
    arrays: dict[str, np.ndarray] = {}
    for name, program in PROGRAMS.items():
        if only and name not in only:
            continue
        entry, blob, values = _one(name, program)
        manifest["programs"][name] = entry
        arrays.update(values)
        if blob is not None:
            (folder / f"{name}.bin").write_bytes(blob)
        print(jax.__version__, name, "ok" if blob is not None else entry["refused"], entry.get("fails", ""), flush=True)
    np.savez_compressed(folder / "values.npz", **arrays)
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    return manifest


def _one(name: str, program: Any) -> tuple[dict[str, Any], bytes | None, dict[str, np.ndarray]]:
    """Manifest entry, artifact and values of one program."""
    import jax
    from jax import export

    entry: dict[str, Any] = {"x64": program.x64, "inexact": program.inexact}
    jax.config.update("jax_enable_x64", program.x64)
    shardy = getattr(jax.config, "jax_use_shardy_partitioner", False)
    convention = jax.config.jax_export_calling_convention_version
    try:
        if program.shardy is not None and (program.shardy or hasattr(jax.config, "jax_use_shardy_partitioner")):
            jax.config.update("jax_use_shardy_partitioner", program.shardy)
        case = program.case()
        if case.calling_convention is not None:
            jax.config.update("jax_export_calling_convention_version", case.calling_convention)
        fun = case.fun if hasattr(case.fun, "lower") else jax.jit(case.fun)
        exporter = export.export(fun, platforms=case.platforms, disabled_checks=case.disabled_checks)
        exported = exporter(*(case.args if case.specs is None else case.specs), **case.kwargs)
        blob = bytes(exported.serialize(vjp_order=case.vjp_order))
    except Exception as error:
        return {**entry, "refused": _one_line(error)}, None, {}
    finally:
        if program.shardy is not None and hasattr(jax.config, "jax_use_shardy_partitioner"):
            jax.config.update("jax_use_shardy_partitioner", shardy)
        jax.config.update("jax_export_calling_convention_version", convention)
    entry.update(
        stored_number=stored_number(blob),
        calling_convention=exported.calling_convention_version,
        platforms=list(exported.platforms),
        devices=exported.nr_devices,
        vjp_order=case.vjp_order,
        runs=case.runs,
        orders=[],
    )
    values: dict[str, np.ndarray] = {}
    try:
        restored = export.deserialize(bytearray(blob))
        if case.runs:
            _run(entry, values, name, restored, case)
    except Exception as error:
        entry["fails"] = _one_line(error)  # the release itself does not run what it wrote
        entry["orders"], values = [], {}
    return entry, blob, values


def _run(entry: dict[str, Any], values: dict[str, np.ndarray], name: str, exported: Any, case: Any) -> None:
    import jax

    args, kwargs = case.args, case.kwargs
    if case.shardings is not None:
        args = tuple(map(jax.device_put, args, case.shardings))
    for order in range(case.vjp_order + 1):
        results = jax.jit(exported.call)(*args, **kwargs) if exported.nr_devices > 1 else exported.call(*args, **kwargs)
        leaves = {"in": jax.tree_util.tree_leaves((args, kwargs)), "out": jax.tree_util.tree_leaves(results)}
        dtypes: dict[str, list[str]] = {}
        for side, found in leaves.items():
            dtypes[side] = [str(leaf.dtype) for leaf in found]
            for index, leaf in enumerate(found):
                values[f"{name}/{order}/{side}/{index}"] = _storable(leaf)
        entry["orders"].append(dtypes)
        if order < case.vjp_order:
            cotangents = [_cotangent(leaf) for leaf in leaves["out"]]
            if case.shardings is not None:
                cotangents = [jax.device_put(c, leaf.sharding) for c, leaf in zip(cotangents, leaves["out"], strict=True)]
            args, kwargs = (*leaves["in"], *cotangents), {}
            exported = exported.vjp()


def _cotangent(result: Any) -> Any:
    """Ones, of the dtype of no gradient for an integer."""
    import jax
    import jax.numpy as jnp

    if jnp.issubdtype(result.dtype, jnp.inexact):
        return np.ones(result.shape, result.dtype)
    return np.zeros(result.shape, jax.dtypes.float0)


def _storable(leaf: Any) -> np.ndarray:
    """The numbers of a leaf, in a form that NumPy stores."""
    import jax

    if hasattr(leaf, "dtype") and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended):
        return np.asarray(jax.random.key_data(leaf))
    array = np.asarray(leaf)
    if array.dtype == jax.dtypes.float0:
        return np.zeros(array.shape, np.bool_)
    if array.dtype.char in _NATIVE and array.dtype.isbuiltin == 1:
        return array
    return array.view(np.uint8 if array.dtype.itemsize == 1 else np.uint16)


def decoded(array: np.ndarray, dtype: str) -> np.ndarray:
    """What `_storable` stored, in its dtype; random keys stay their data."""
    import ml_dtypes

    if dtype.startswith("key<"):
        return array
    if dtype == "[('float0', 'V')]":
        return np.zeros(array.shape, np.dtype([("float0", np.void, 0)]))
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    return array if array.dtype == kind else array.view(kind)


def stored_number(blob: bytes) -> int:
    """The serialization version number that stands in slot 0 of the flatbuffer's root."""
    (root,) = struct.unpack_from("<I", blob, 0)
    (back,) = struct.unpack_from("<i", blob, root)
    (offset,) = struct.unpack_from("<H", blob, root - back + 4)
    return struct.unpack_from("<H", blob, root + offset)[0] if offset else 0


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:200]


def compare(folder: Path, frozen: Path) -> list[str]:
    """What differs between a regenerated release and the frozen one, in words; empty if nothing does."""
    new, old = (json.loads((place / "manifest.json").read_text())["programs"] for place in (folder, frozen))
    found = []
    for name in sorted({*new, *old}):
        if name not in new or name not in old:
            found.append(f"{name}: only {'frozen' if name in old else 'regenerated'}")
        elif "refused" in old[name] or "refused" in new[name]:
            if ("refused" in old[name]) != ("refused" in new[name]):
                found.append(f"{name}: refused by one: {old[name].get('refused') or new[name].get('refused')}")
        elif new[name] != old[name]:
            found.append(f"{name}: described differently: {old[name]} and now {new[name]}")
    with np.load(folder / "values.npz") as new_values, np.load(frozen / "values.npz") as old_values:
        for key in sorted({*new_values} & {*old_values}):
            a, b = old_values[key], new_values[key]
            if a.shape != b.shape or a.dtype != b.dtype or not _same(a, b, bool(old[key.split("/")[0]]["inexact"])):
                found.append(f"{key}: other numbers")
        found += [f"{key}: only in one" for key in sorted({*new_values} ^ {*old_values})]
    return found


def _same(a: np.ndarray, b: np.ndarray, inexact: bool) -> bool:
    # Another processor takes other instructions: where results are inexact, so are these.
    return np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True) if inexact else a.tobytes() == b.tobytes()


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), tuple(sys.argv[3:]))
    else:
        differences = compare(Path(sys.argv[2]), Path(sys.argv[3]))
        print("\n".join(differences) or f"{sys.argv[2]}: equal to the frozen corpus")
        sys.exit(bool(differences))
