"""`lift`: a module as a JAX function, with the pytrees of its caller where a record says what they are.

The function is traced once for each shape and dtype, as by `jax.jit`: nothing runs before all of it is evaluated, and
what JAX does with a function it does with this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import jax
import jax.core
import jax.numpy as jnp
import numpy as np

from jaxtf.serialization import _jax
from jaxtf.serialization._artifact.deserialize import deserialize
from jaxtf.serialization._bytecode.portable import custom_call_targets
from jaxtf.serialization._call.call import flat_arguments
from jaxtf.serialization._call.primitive import called_avals
from jaxtf.serialization._errors import ArgumentMismatch, ArtifactError, LiftUnsupported, PlatformError
from jaxtf.serialization._jax_values.settings import default_export_platform
from jaxtf.serialization._jaxlib import read_module
from jaxtf.serialization._lift.evaluate import Evaluator
from jaxtf.serialization._lift.reading import READING
from jaxtf.serialization._lift.sizes import known_array
from jaxtf.serialization._lift.table import check
from jaxtf.serialization._program.for_xla import rewrite_for_xla
from jaxtf.serialization._program.module import load_module
from jaxtf.serialization._program.parse import read_program
from jaxtf.serialization._program.platforms import for_platform
from jaxtf.serialization._program.program import Program, TensorType, TokenType
from jaxtf.serialization._program.refusal import type_text
from jaxtf.serialization._program.replaced_calls import rewrite_removed_custom_calls
from jaxtf.serialization._program.utf8 import in_utf8
from jaxtf.serialization._record.avals import Aval, ExtendedDtype
from jaxtf.serialization._record.checks import DisabledSafetyCheck
from jaxtf.serialization._record.exported import Exported

__all__ = ["lift", "lift_exported"]

_PORTABLE, _BYTECODE = b"StableHLO_v", b"ML\xefR"


def lift(source: Any, names: Sequence[str] | None, platform: str | None) -> Any:
    """The JAX function, or functions by name, of a module; see `jaxtf.serialization.lift`."""
    if isinstance(names, str):
        raise TypeError(f"names must be a list of names of functions; found {names!r}\n  remedy: names=[{names!r}]")
    found = _read(source)
    if isinstance(found, Exported) and names is None:
        return lift_exported(found, platform)
    module = found.mlir_module_serialized if isinstance(found, Exported) else found
    if names is None:
        return _lift_function(module, None)
    return {name: _lift_function(module, name) for name in names}


def _read(source: Any) -> Any:
    """What is to be lifted: an `Exported`, or a module that `read_module` reads."""
    if isinstance(source, PathLike):
        source = Path(source).read_bytes()
    if isinstance(source, bytearray | memoryview):
        source = bytes(source)
    if isinstance(source, Exported | str):
        return source
    if isinstance(source, bytes):
        if source.startswith(_BYTECODE):
            if _PORTABLE in source[:64]:
                custom_call_targets(source)  # reads its frame and tables: MLIR's parser crashes on some damaged ones
            return source
        return source.decode() if _is_text(source) else deserialize(source)
    if callable(getattr(source, "compiler_ir", None)):  # jax.stages.Lowered
        return str(source.compiler_ir("stablehlo"))
    if hasattr(source, "mlir_module_serialized"):  # jax.export.Exported
        return deserialize(source.serialize())
    return str(source)


def _is_text(source: bytes) -> bool:
    try:
        return "\0" not in source.decode()
    except UnicodeDecodeError:
        return False


# --- with a record ---


def lift_exported(exported: Exported, platform: str | None = None) -> Callable[..., Any]:
    """The JAX function of a record; see `Exported.lift`."""
    run = _ExportedFunction(exported, platform)

    def flat(*arrays: Any) -> list[Any]:
        return run(arrays)

    flat.__name__ = flat.__qualname__ = exported.fun_name
    compiled = jax.jit(flat)

    def lifted(*args: Any, **kwargs: Any) -> Any:
        leaves = flat_arguments(exported, args, kwargs)
        typed = zip(leaves, exported.in_avals, strict=True)
        results = compiled(*(_zeros(np.shape(x), np.dtype(np.bool_)) if _is_float0(aval) else x for x, aval in typed))
        made = zip(results, exported.out_avals, strict=True)
        leaves = [_zeros(x.shape, jax.dtypes.float0) if _is_float0(aval) else x for x, aval in made]
        return jax.tree.unflatten(exported.out_tree, leaves)

    lifted.__name__ = lifted.__qualname__ = exported.fun_name
    lifted.__doc__ = f"{exported.fun_name}, lifted from its StableHLO module by jaxtf.serialization."
    return lifted


def _is_float0(aval: Any) -> bool:
    """Whether an aval is of a value without tangents, for which a module has truth values."""
    return bool(not isinstance(aval.dtype, ExtendedDtype) and aval.dtype == jax.dtypes.float0)


def _zeros(shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Any:
    is_known = all(isinstance(size, int) for size in shape)
    return np.zeros(shape, dtype) if is_known else jnp.zeros(shape, dtype)


class _ExportedFunction:
    """The function of a record on flat arrays."""

    def __init__(self, exported: Exported, platform: str | None) -> None:
        _refuse(exported)
        self._exported = exported
        self._leading: list[Any] = []
        index = _platform_index(exported, platform)
        program = for_platform(read_program(load_module(exported, is_read=True), READING), index)
        if len(exported.platforms) > 1:
            self._leading = [known_array(np.dtype(np.int32), [index], ())]
        check(program)
        checks_shapes = DisabledSafetyCheck.shape_assertions() not in exported.disabled_safety_checks
        self._evaluator = Evaluator(program, checks_shapes)

    def __call__(self, flat: Sequence[Any]) -> list[Any]:
        exported = self._exported
        actual = [_actual(x, aval) for x, aval in zip(flat, exported.in_avals, strict=True)]
        expected = called_avals(exported, actual)
        kept = [_words(flat[index], exported.in_avals[index]) for index in exported.module_kept_var_idx]
        results = self._evaluator.main([*self._leading, *kept])
        recorded = zip(results, expected, exported.out_avals, strict=True)
        return [_as_recorded(exported, result, aval, own) for result, aval, own in recorded]


def _refuse(exported: Exported) -> None:
    """Refuses what is more than a function of arrays."""
    what = [f"the ordered effects {', '.join(map(str, exported.ordered_effects))}"] * bool(exported.ordered_effects)
    what += [f"calls of {', '.join(f.name for f in exported.called_functions)} by name"] * bool(
        exported.called_functions
    )
    if what:
        raise LiftUnsupported(
            f"'{exported.fun_name}' has {' and '.join(what)}, which a lifted function cannot have\n"
            "  remedy: run it as it is, by Exported.call, or convert it to TensorFlow"
        )


def _platform_index(exported: Exported, platform: str | None) -> int:
    """The platform index to evaluate the module for."""
    wanted = platform or (default_export_platform() if len(exported.platforms) > 1 else exported.platforms[0])
    if wanted not in exported.platforms:
        raise PlatformError(
            f"'{exported.fun_name}' was lowered for {', '.join(exported.platforms)}, not for {wanted}: choose which "
            "of its branches to lift\n"
            f"  remedy: lift(platform={exported.platforms[0]!r}), or another of these; the result runs on any platform"
        )
    return exported.platforms.index(wanted)


def _actual(value: Any, aval: Aval) -> Any:
    """The aval of an argument; of a value without tangents, as the record has it."""
    found = jax.typeof(value)
    return jax.core.ShapedArray(found.shape, jax.dtypes.float0) if _is_float0(aval) else found


def _words(value: Any, aval: Aval) -> Any:
    """An argument as the module takes it: of a random key, its words."""
    return jax.random.key_data(value) if isinstance(aval.dtype, ExtendedDtype) else value


_KEY_IMPLEMENTATIONS = {"key<fry>": "threefry2x32", "key<rbg>": "rbg", "key<urbg>": "unsafe_rbg"}


def _as_recorded(exported: Exported, result: Any, aval: Any, recorded: Aval) -> Any:
    """A result as the record has it: a random key, a weakly typed array, of the size that its shape says.

    Raises:
      ArtifactError: It has another shape.
    """
    if isinstance(recorded.dtype, ExtendedDtype):
        return jax.random.wrap_key_data(result, impl=_KEY_IMPLEMENTATIONS[recorded.dtype.name])
    if tuple(result.shape) != tuple(aval.shape):
        raise ArtifactError(
            f"the module of '{exported.fun_name}' gives a result of shape {tuple(result.shape)}, and its record says "
            f"{tuple(aval.shape)}\n  remedy: export the function again; the artifact was changed by its writer"
        )
    return _jax.weakly_typed(result) if recorded.weak_type and not _is_float0(recorded) else result


# --- without one ---


def _lift_function(module: Any, name: str | None) -> Callable[..., Any]:
    """A function of a module on arrays, in the order of its arguments: one result, or a tuple."""
    try:
        parsed = read_module(in_utf8(module)) if isinstance(module, bytes | str) else module
    except ValueError as error:
        raise ArtifactError(f"lift needs a StableHLO module: {error}{_hint(module)}") from error
    rewrite_removed_custom_calls(parsed)
    rewrite_for_xla(parsed)
    try:
        program = read_program(parsed, READING, name)
    except ValueError as error:
        raise ArtifactError(f"lift needs a StableHLO module: {error}") from error
    check(program)
    function = next(iter(program.functions.values()))
    types = [value.type for value in (*function.body.arguments, *function.body.returned)]
    if any(isinstance(type_, TokenType) for type_ in types):
        raise LiftUnsupported(f"'{function.name}' takes or returns tokens, which order effects: JAX has none")
    evaluator = Evaluator(program)

    def flat(*arrays: Any) -> list[Any]:
        _check_arguments(program, arrays)
        return evaluator.main(arrays)

    flat.__name__ = flat.__qualname__ = function.name
    compiled = jax.jit(flat)

    def lifted(*args: Any) -> Any:
        results = compiled(*args)
        return results[0] if len(results) == 1 else tuple(results)

    lifted.__name__ = lifted.__qualname__ = function.name
    lifted.__doc__ = f"{function.name}, lifted from StableHLO by jaxtf.serialization."
    return lifted


def _hint(module: Any) -> str:
    is_name = isinstance(module, str) and "\n" not in module and len(module) < 4096 and Path(module).exists()
    return "\n  remedy: to read a file, pass pathlib.Path(...)" if is_name else ""


def _check_arguments(program: Program, arrays: Sequence[Any]) -> None:
    """Refuses arguments that are not those of the main function."""
    function = next(iter(program.functions.values()))
    expected = [argument.type for argument in function.body.arguments]
    if len(arrays) != len(expected):
        raise ArgumentMismatch(f"'{function.name}' takes {len(expected)} arguments, found {len(arrays)}")
    for index, (array, type_) in enumerate(zip(arrays, expected, strict=True)):
        assert isinstance(type_, TensorType), "what is not an array is refused"
        fits = array.ndim == type_.rank and all(
            known is None or found == known for found, known in zip(array.shape, type_.shape, strict=True)
        )
        if not fits or array.dtype != type_.dtype:
            sizes = ",".join(map(str, array.shape))
            raise ArgumentMismatch(
                f"argument {index} of '{function.name}' must be {type_text(type_)}, found {array.dtype}[{sizes}]"
            )
