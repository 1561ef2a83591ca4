"""`ExportedModel`: an exported function with its weights; `save` and `load`."""

from __future__ import annotations

import itertools
import json
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jaxtf.serialization import _with_jax
from jaxtf.serialization._artifact.describe import describe
from jaxtf.serialization._artifact.description import Description
from jaxtf.serialization._artifact.deserialize import deserialize_bytes
from jaxtf.serialization._container.json_text import utf_8
from jaxtf.serialization._container.parts import parts_of
from jaxtf.serialization._container.source import Readable, Source, opened
from jaxtf.serialization._container.whole_file import written_whole
from jaxtf.serialization._errors import ArgumentMismatch, ArtifactError, SerializationError
from jaxtf.serialization._record.checks import DisabledSafetyCheck
from jaxtf.serialization._record.exported import Exported
from jaxtf.serialization._record.kinds import PyTreeDefKind
from jaxtf.serialization._record.tree import Tree
from jaxtf.serialization._record.versions import RELEASE
from jaxtf.serialization._requires import require_jax
from jaxtf.serialization._weights.names import array_names, names_of_weights
from jaxtf.serialization._weights.read import arrays_of
from jaxtf.serialization._weights.write import Leaf, write_model

__all__ = ["ExportedModel", "export_model", "load", "model_of", "read_artifact", "save"]


@dataclass(frozen=True, eq=False)
class ExportedModel:
    """An exported function together with the values of some of its arguments: a program with its weights.

    Attributes:
      exported: The function, which takes the weights as arguments.
      params: The weights: of one argument its pytree, of several a tuple of these. Of a file, arrays of NumPy in the
        memory of the file, which cannot be written to. Do not write to those that you pass: the first call may keep
        copies, so that later calls have the old values or the new ones. `with_params` takes others.
      argnums: The position of the argument that they are for, or several positions, as in `jax.grad`.
      metadata: What JSON can hold, for people and programs.

    Within `jax.jit` and for gradients with respect to the weights, pass them: `model.exported.call(model.params, x)`.
    """

    exported: Exported
    params: Any = field(repr=False)
    argnums: int | tuple[int, ...] = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "argnums", _as_python(self.argnums))
        self.leaves  # noqa: B018  they are checked

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the arguments that the weights are for."""
        return self.argnums if isinstance(self.argnums, tuple) else (self.argnums,)

    @property
    def _trees(self) -> tuple[Tree, ...]:
        """The structure of each of these arguments."""
        arguments = self.exported.in_structure.children[0]
        positions = self.positions
        fits = all(type(number) is int and 0 <= number < len(arguments.children) for number in positions)
        if arguments.kind is not PyTreeDefKind.TUPLE or not fits or sorted(set(positions)) != list(positions):
            raise SerializationError(
                f"argnums must be positions of arguments of '{self.exported.fun_name}', ascending and less than "
                f"{len(arguments.children)}; found {self.argnums!r:.80}"
            )
        return tuple(arguments.children[position] for position in positions)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The flat weights, each with what the function takes there.

        Raises:
          ArgumentMismatch: They have another structure.
          SerializationError: One is of another dtype or shape, or of a dtype that files do not hold.
        """
        trees, places = self._trees, self.flat_positions
        values = tuple(self.params) if isinstance(self.argnums, tuple) else (self.params,)
        if len(values) != len(trees):
            raise ArgumentMismatch(f"params must be {len(trees)} pytrees, one for each of argnums; found {len(values)}")
        flat = [
            leaf
            for position, tree, value in zip(self.positions, trees, values, strict=True)
            for leaf in tree.flatten(value, f"params for args[{position}]")
        ]
        paths = [self.exported.in_names[place] for place in places]
        names = names_of_weights(paths, None if isinstance(self.argnums, tuple) else self.argnums)
        return tuple(
            Leaf(path, name, self.exported.in_avals[place], value)
            for path, name, place, value in zip(paths, names, places, flat, strict=True)
        )

    @cached_property
    def flat_positions(self) -> tuple[int, ...]:
        """Where the weights are among the flat arguments of the function."""
        counts = [child.leaf_count for child in self.exported.in_structure.children[0].children]
        return tuple(
            place for position in self.positions for place in range(sum(counts[:position]), sum(counts[: position + 1]))
        )

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function from JAX with its weights; see `Exported.call`.

        They are put on the default device at the first call; on a CPU those of a file stay in its memory. A function
        over several devices takes weights that are placed: `load(path, params=...)`.

        Args:
          *args: The other arguments.
          **kwargs: Likewise.
        """
        remaining = iter(args)
        count, taken = len(args) + len(self.positions), len(self.exported.in_structure.children[0].children)
        if count != taken:
            raise ArgumentMismatch(
                f"'{self.exported.fun_name}' takes {taken - len(self.positions)} positional arguments besides its "
                f"weights; found {len(args)}"
            )
        bound = dict(zip(self.positions, self._placed, strict=True))
        merged = [bound.pop(number) if number in bound else next(remaining) for number in range(count) if bound or args]
        return self.exported.call(*merged, **kwargs)

    @property
    def _placed(self) -> tuple[Any, ...]:
        """The weights on the device, in the structure of each argument; what is shared there once.

        They are kept for later calls, unless JAX makes arrays of another dtype of them (64-bit types are off).
        """
        if (kept := vars(self).get("_kept")) is not None:
            return tuple(kept)
        require_jax("ExportedModel.call")
        distinct = {leaf.identity: leaf.value for leaf in self.leaves}
        keeps = True
        if self.exported.nr_devices == 1:
            arrays = [value for value in distinct.values() if hasattr(value, "dtype")]
            on_device = dict(zip(map(id, arrays), _with_jax.on_default_device(arrays), strict=True))
            keeps = all(on_device[id(array)].dtype == array.dtype for array in arrays)
            distinct = {key: on_device.get(id(value), value) for key, value in distinct.items()}
        flat = iter([distinct[leaf.identity] for leaf in self.leaves])
        placed = tuple(tree.unflatten([next(flat) for _ in range(tree.leaf_count)]) for tree in self._trees)
        if keeps:
            vars(self)["_kept"] = placed
        return placed

    def save(
        self, path: str | os.PathLike[str], *, vjp_order: int = 0, metadata: Any = None, overwrite: bool = False
    ) -> Description:
        """Writes both into one file; see `save`. The metadata are those that it has, unless others are given."""
        if os.path.exists(path) and not overwrite:
            raise FileExistsError(
                None, "the file exists; remedy: save(..., overwrite=True), or another path", os.fspath(path)
            )
        values = _json_values(self.metadata if metadata is None else metadata)
        artifact = self.exported.serialize(vjp_order)
        with written_whole(os.fspath(path)) as file:
            producer = {"jaxtf-serialization": RELEASE}
            is_tuple = isinstance(self.argnums, tuple)
            write_model(
                file, artifact, self.leaves, self.positions, is_tuple=is_tuple, metadata=values, producer=producer
            )
        return describe(path)

    def with_params(self, params: Any) -> ExportedModel:
        """The same function with other weights, of the same structure, dtypes and shapes."""
        return ExportedModel(self.exported, params, self.argnums, self.metadata)

    def _repr_html_(self) -> str:
        weights = f"{len(self.leaves)} arrays for arguments {self.positions}"
        return f"{self.exported._repr_html_()}<p>weights: {weights}</p>"

    def __repr__(self) -> str:
        return f"ExportedModel({self.exported}, {len(self.leaves)} arrays for arguments {self.positions})"


def save(
    path: str | os.PathLike[str],
    exported: Exported,
    params: Any,
    *,
    argnums: int | Sequence[int] = 0,
    vjp_order: int = 0,
    metadata: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> Description:
    """Writes an exported function and its weights into one file.

    The file is a safetensors file: other programs read the weights from it, by names such as `encoder.0.kernel`. It
    holds the function's artifact, and a SHA-256 of each part. It appears only when it is complete. Weights are written
    as they are in memory, one after the other; those on other devices or split over several are gathered as
    `jax.device_get` does, one at a time. An array at several places in the pytree is written once. Arrays of NumPy
    need no JAX.

    Args:
      path: The file to write.
      exported: A function that takes the weights as an argument, or as several.
      params: A pytree of arrays for that argument; for several, a tuple of these.
      argnums: The position of that argument, or several, ascending.
      vjp_order: How many orders of VJP to write, as for `Exported.serialize`: 1 to train the loaded function.
      metadata: What JSON can hold.
      overwrite: Whether to replace an existing file.

    Returns:
      What `describe` returns for the file.

    Raises:
      SerializationError: `argnums` are not positions of arguments, an array is of another dtype or shape than the
        function was exported for, or the function or the metadata cannot be written.
      ArgumentMismatch: `params` has another structure.
      FileExistsError: The file exists, and `overwrite` is false.
      VjpUnavailable: As for `Exported.serialize`.

    >>> import os, tempfile, jax, jax.numpy as jnp, numpy as np
    >>> from jaxtf.serialization import export, load, save
    >>> params = {"w": np.ones((3, 2), np.float32)}
    >>> exported = export(lambda params, x: x @ params["w"])(params, jax.ShapeDtypeStruct((1, 3), jnp.float32))
    >>> path = os.path.join(tempfile.mkdtemp(), "model.jaxtf")
    >>> print(save(path, exported, params).weights.arrays[0])
    float32[3, 2]
    >>> load(path).call(jnp.ones((1, 3)))
    Array([[3., 3.]], dtype=float32)
    """
    model = ExportedModel(exported, params, _as_python(argnums), {} if metadata is None else metadata)
    return model.save(path, vjp_order=vjp_order, overwrite=overwrite)


def export_model(
    fun: Callable[..., Any],
    *,
    least_bytes: int = 2**16,
    platforms: list[str] | tuple[str, ...] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    calling_convention_version: int | None = None,
    stablehlo_version: str | None = None,
    tensorflow_version: str | None = None,
    expand_linear_algebra: bool = False,
) -> Callable[..., ExportedModel]:
    """A function from argument specifications to the exported `fun`, the arrays that it closes over outside it.

    As `export`, for functions that have their weights in variables: the arrays are not in the module, so that there is
    no limit of 2 GB to them, and they can be replaced. They are a dictionary, the first argument of the exported
    function, by the names of the variables and keys that hold them: `params.dense.kernel`; `constant_0` and so on where
    no variable does. They are found at any depth: in functions under `jax.jit` too, also within loops, branches,
    `jax.checkpoint` and functions with rules of differentiation. An array in another operation is refused.

    A rule of `jax.custom_jvp`, `jax.custom_vjp` or `jax.custom_gradient` has no derivative by what its function closes
    over, and holds its own copies of it. The value of such a function is that of the new weights, but the VJP is
    refused (`VjpUnavailable`) where it would need such a derivative or hold large arrays of a rule: pass the arrays to
    the function with the rule as arguments.

    Args:
      fun: As for `export`.
      least_bytes: Arrays of at least that many bytes are taken out; smaller ones stay in the module.
      platforms: As for `export`.
      disabled_checks: Likewise.
      calling_convention_version: Likewise.
      stablehlo_version: Likewise.
      tensorflow_version: Likewise.
      expand_linear_algebra: Likewise.

    Raises:
      SerializationError: It closes over no such array, or over one within an operation such as `custom_linear_solve`
        (the message has its name), or it has static arguments, shardings or effects (when called).
      PlatformError, StablehloVersionError, UnstableCustomCall: As `export`, which may raise others too.

    >>> import jax, jax.numpy as jnp, numpy as np
    >>> from jaxtf.serialization import export_model
    >>> params = {"w": jnp.ones((128, 256))}
    >>> model = export_model(lambda x: x @ params["w"])(jax.ShapeDtypeStruct((1, 128), jnp.float32))
    >>> {name: array.shape for name, array in model.params.items()}
    {'params.w': (128, 256)}
    >>> model.call(jnp.ones((1, 128))).shape
    (1, 256)
    """
    require_jax("export_model")
    target = _with_jax.target_of(
        platforms=platforms,
        disabled_checks=disabled_checks,
        calling_convention_version=calling_convention_version,
        stablehlo_version=stablehlo_version,
        tensorflow_version=tensorflow_version,
        expand_linear_algebra=expand_linear_algebra,
    )
    exporter = _with_jax.exporter_with_weights(fun, target, least_bytes, array_names)

    def export_for(*args: Any, **kwargs: Any) -> ExportedModel:
        return ExportedModel(*exporter(*args, **kwargs))

    return export_for


def load(source: Readable, params: Any = None, *, verify: bool = True) -> ExportedModel:
    """Reads a function with its weights from a file that `save` wrote.

    The weights stay in the memory of the file: nothing is copied. Needs no JAX.

    Args:
      source: A path, an open file, or bytes; from a source you trust, as for `deserialize`.
      params: Weights to bind instead of those in the file, of the same structure, dtypes and shapes; those in the file
        are then not read.
      verify: Whether to compare the weights with their digests, which reads all of them once. The other digests
        are always verified.

    Raises:
      ArtifactError: Not such a file, or a damaged one.
      VersionError: It is of a later format.
      ArgumentMismatch, SerializationError: The weights are not those that the function takes.
      OSError: The file cannot be read.
    """
    with opened(source) as content:
        return model_of(content, params, verify)


def read_artifact(source: Readable) -> Exported | ExportedModel:
    """A function with its weights from a file that `save` wrote; an exported function from an artifact.

    Raises:
      ArtifactError, VersionError, OSError: As `load` and `deserialize`.
    """
    with opened(source) as content:
        parts = parts_of(content)
        return deserialize_bytes(parts.artifact) if parts.manifest is None else model_of(content)


def model_of(source: Source, params: Any = None, verify: bool = True) -> ExportedModel:
    """A function with its weights from a source that is open; see `load`."""
    parts = parts_of(source)
    manifest = parts.manifest
    if manifest is None:
        raise ArtifactError(
            "this is an artifact without weights\n"
            "  remedy: jaxtf.serialization.deserialize reads it; save writes it with weights"
        )
    exported = deserialize_bytes(parts.artifact)
    is_tuple = manifest.is_tuple or len(manifest.arguments) != 1
    argnums = manifest.arguments if is_tuple else manifest.arguments[0]
    if params is not None:
        return ExportedModel(exported, params, argnums, manifest.metadata)
    arrays = arrays_of(source, parts, verify)
    try:
        bound = _nested(exported, manifest.arguments, [arrays[name] for name in manifest.leaves])
        return ExportedModel(exported, bound if is_tuple else bound[0], argnums, manifest.metadata)
    except SerializationError as error:
        raise ArtifactError(f"the weights are not those of the program: {error}") from error


def _nested(exported: Exported, positions: Sequence[int], leaves: Sequence[Any]) -> tuple[Any, ...]:
    """The weights of each argument in its structure."""
    arguments = exported.in_structure.children[0].children if exported.in_structure.children else ()
    if any(position >= len(arguments) for position in positions) or sorted(set(positions)) != list(positions):
        raise ArtifactError(f"the weights are for the arguments {positions}; the program has {len(arguments)}")
    trees = [arguments[position] for position in positions]
    if sum(tree.leaf_count for tree in trees) != len(leaves):
        raise ArtifactError(
            f"the program takes {sum(tree.leaf_count for tree in trees)} arrays for weights; there are {len(leaves)}"
        )
    flat = iter(leaves)
    return tuple(tree.unflatten([next(flat) for _ in range(tree.leaf_count)]) for tree in trees)


def _as_python(argnums: Any) -> Any:
    """A position or a tuple of positions, of integers of Python; what is neither stays as it is, and is refused."""
    if isinstance(argnums, Iterable) and not isinstance(argnums, str | bytes):
        return tuple(map(_as_python, argnums))
    if isinstance(argnums, bool) or not hasattr(argnums, "__index__"):
        return argnums
    try:
        return operator.index(argnums)
    except TypeError:  # an array of NumPy, or a truth value
        return argnums


def _json_values(metadata: Any) -> dict[str, Any]:
    """The metadata as JSON values.

    Raises:
      SerializationError: JSON cannot hold them.
    """
    try:
        _check_texts(metadata)
        values = json.loads(json.dumps(metadata, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise SerializationError(f"metadata must be what JSON can hold: {error}") from error
    if not isinstance(values, dict):
        raise SerializationError(f"metadata must be a dictionary, found {type(metadata).__name__}")
    return values


def _check_texts(value: Any) -> None:
    """Refuses keys that are not texts, as JSON may make one text of two of them, and texts that UTF-8 does not have.

    Raises:
      SerializationError: Names the key or the text.
    """
    if isinstance(value, dict):
        if others := [key for key in value if not isinstance(key, str)]:
            raise SerializationError(f"metadata must have texts for keys; found {others[0]!r:.60}")
        for item in itertools.chain(value, value.values()):
            _check_texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_texts(item)
    elif isinstance(value, str):
        utf_8(value)
