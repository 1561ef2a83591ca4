"""Makes the corpus: artifacts that a JAX release writes, and the numbers that it computes from them.

`python generate.py write FOLDER`, inside an environment of `releases.py`, exports every
program of `programs.py` and writes into FOLDER/<release>:

- `<program>.bin`, the artifact;
- `manifest.json`, what was written, under which versions, and why the rest could not be; of each
  program that runs, dtype and shape of the leaves of its arguments and results: `orders[0]` are
  those of the function, `orders[1]` those of its VJP, and so on;
- `values.npz`, under the name of each such program the numbers of these leaves, as bytes, one
  leaf after the other (`read_values`).

`python generate.py compare FOLDER FROZEN` holds a regenerated release against the frozen one:
the programs, the reasons and the numbers must be equal. The bytes need not be: source
locations hold paths.

Runs on Python 3.10 and JAX 0.4.30. The frozen files are never rewritten.
"""

from __future__ import annotations

import json
import os
import platform
import re
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["compare", "read_values", "stored_number", "write"]


def write(folder: Path, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Writes the corpus of the installed release into `folder`; returns its manifest."""
    import jax
    import jaxlib
    from programs import PROGRAMS

    # Source locations name the file, not its folder.
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
    arrays: dict[str, np.ndarray] = {}  # of each program that ran, all leaves of all orders as bytes
    for name, program in PROGRAMS.items():
        if only and name not in only:
            continue
        entry, blob, values = _one(program)
        manifest["programs"][name] = entry
        if values:
            arrays[name] = np.frombuffer(b"".join(value.tobytes() for value in values), np.uint8)
        if blob is not None:
            (folder / f"{name}.bin").write_bytes(blob)
        print(jax.__version__, name, "ok" if blob is not None else entry["refused"], entry.get("fails", ""), flush=True)
    np.savez_compressed(folder / "values.npz", **arrays)
    (folder / "manifest.json").write_text(_text(manifest))
    return manifest


def _text(manifest: dict[str, Any]) -> str:
    """The manifest as JSON, one line for each program."""
    programs = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in manifest["programs"].items())
    facts = "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in manifest.items() if k != "programs")
    return f'{{\n{facts} "programs": {{\n{programs}\n }}\n}}\n'


def _one(program: Any) -> tuple[dict[str, Any], bytes | None, list[np.ndarray]]:
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
        return {**entry, "refused": _one_line(error)}, None, []
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
    values: list[np.ndarray] = []
    try:
        restored = export.deserialize(bytearray(blob))
        if case.runs:
            _run(entry, values, restored, case)
    except Exception as error:
        entry["fails"] = _one_line(error)  # the release itself does not run what it wrote
        entry["orders"], values = [], []
    return entry, blob, values


def _run(entry: dict[str, Any], values: list[np.ndarray], exported: Any, case: Any) -> None:
    """Calls the function and its VJPs; enters what their leaves are, and appends the leaves themselves."""
    import jax

    args, kwargs = case.args, case.kwargs
    if case.shardings is not None:
        args = tuple(map(jax.device_put, args, case.shardings))
    for order in range(case.vjp_order + 1):
        results = jax.jit(exported.call)(*args, **kwargs) if exported.nr_devices > 1 else exported.call(*args, **kwargs)
        leaves = {"in": jax.tree_util.tree_leaves((args, kwargs)), "out": jax.tree_util.tree_leaves(results)}
        entry["orders"].append({side: [_described(leaf) for leaf in found] for side, found in leaves.items()})
        values += [_storable(leaf) for found in leaves.values() for leaf in found]
        if order < case.vjp_order:
            cotangents = [_cotangent(leaf) for leaf in leaves["out"]]
            if case.shardings is not None:
                cotangents = [
                    jax.device_put(c, leaf.sharding) for c, leaf in zip(cotangents, leaves["out"], strict=True)
                ]
            args, kwargs = (*leaves["in"], *cotangents), {}
            exported = exported.vjp()


def _described(leaf: Any) -> str:
    """Dtype and shape, such as `float32[3,4]`; of a random key those of its data too: `key<fry>[] uint32[2]`."""
    import jax

    dtype = "float0" if leaf.dtype == jax.dtypes.float0 else str(leaf.dtype)
    text = f"{dtype}[{','.join(map(str, leaf.shape))}]"
    if dtype.startswith("key<"):
        return f"{text} {_described(_storable(leaf))}"
    return text


def _cotangent(result: Any) -> Any:
    """Ones, of the dtype of no gradient for an integer."""
    import jax
    import jax.numpy as jnp

    if jnp.issubdtype(result.dtype, jnp.inexact):
        return np.ones(result.shape, result.dtype)
    return np.zeros(result.shape, jax.dtypes.float0)


def _storable(leaf: Any) -> np.ndarray:
    """The numbers of a leaf."""
    import jax

    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended):
        return np.asarray(jax.random.key_data(leaf))
    array = np.asarray(leaf)
    return np.zeros(array.shape, np.bool_) if array.dtype == jax.dtypes.float0 else array


def read_values(entry: dict[str, Any], stored: np.ndarray) -> list[dict[str, list[tuple[str, np.ndarray]]]]:
    """The leaves of each order, as (dtype, numbers), from the bytes that represent a program in `values.npz`.

    The numbers of a random key are its data, those of `float0` are False.
    """
    blob, offset = stored.tobytes(), 0
    found = []
    for order in entry["orders"]:
        sides: dict[str, list[tuple[str, np.ndarray]]] = {}
        for side in ("in", "out"):
            sides[side] = []
            for text in order[side]:
                dtype, _, shape = text.split(" ")[-1].removesuffix("]").partition("[")
                sizes = tuple(int(size) for size in shape.split(",") if size)
                kind = _numpy_dtype(dtype)
                array = np.frombuffer(blob, kind, int(np.prod(sizes, dtype=np.int64)), offset).reshape(sizes)
                offset += array.nbytes
                sides[side].append((text.partition("[")[0], array))
        found.append(sides)
    assert offset == len(blob), "the values of a program are its leaves, one after the other"
    return found


def _numpy_dtype(name: str) -> np.dtype:
    import ml_dtypes

    return np.dtype(np.bool_) if name == "float0" else np.dtype(getattr(ml_dtypes, name, None) or name)


def stored_number(blob: bytes) -> int:
    """The serialization version number that is in slot 0 of the flatbuffer's root."""
    (root,) = struct.unpack_from("<I", blob, 0)
    (back,) = struct.unpack_from("<i", blob, root)
    (offset,) = struct.unpack_from("<H", blob, root - back + 4)
    return struct.unpack_from("<H", blob, root + offset)[0] if offset else 0


def _one_line(error: BaseException) -> str:
    """Kind and beginning of an error, without what differs from run to run."""
    text = " ".join(str(error).split())
    text = re.sub(r" at 0x[0-9a-f]+|Using symbolic scope.*| \(/[^)]*\)", "", text)
    return f"{type(error).__name__}: {text}"[:160].strip()


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
        for name in sorted({*new_values} & {*old_values}):
            if new[name]["orders"] != old[name]["orders"]:
                continue  # reported above
            pairs = zip(_outputs(old[name], old_values[name]), _outputs(new[name], new_values[name]), strict=True)
            if not all(_same(a, b, bool(old[name]["inexact"])) for a, b in pairs):
                found.append(f"{name}: other numbers")
    return found


def _outputs(entry: dict[str, Any], stored: np.ndarray) -> list[np.ndarray]:
    return [array for order in read_values(entry, stored) for side in ("in", "out") for _, array in order[side]]


def _same(a: np.ndarray, b: np.ndarray, inexact: bool) -> bool:
    # Another processor takes other instructions: where results are inexact, so are these.
    return np.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True) if inexact else a.tobytes() == b.tobytes()


if __name__ == "__main__":
    os.environ |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), tuple(sys.argv[3:]))
    else:
        differences = compare(Path(sys.argv[2]), Path(sys.argv[3]))
        print("\n".join(differences) or f"{sys.argv[2]}: equal to the frozen corpus")
        sys.exit(bool(differences))
