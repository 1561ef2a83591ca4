"""Whether the module of an exported function is what its record says; needs no JAX.

A digest says that bytes are those that were written, not that a record was written for its module. JAX and TensorFlow
take the types of arguments and results from the record, and the computation from the module: where the two differ,
memory is read as another dtype, or beyond its end. So both are compared before a module is used.

The function `main` takes and returns, in this order (docs/artifact_format.md, section 4):

    (platform index?, tokens..., kept arguments...) -> (tokens..., results...)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxtf.serialization._bytecode.functions import TOKEN, ModuleFunction, ValueType, module_functions
from jaxtf.serialization._bytecode.portable import custom_call_targets
from jaxtf.serialization._errors import ArtifactError
from jaxtf.serialization._record.avals import Aval, dtype_from_name, dtype_name
from jaxtf.serialization._record.checks import is_callback
from jaxtf.shapepoly import is_symbolic_dim

if TYPE_CHECKING:
    from jaxtf.serialization._record.exported import Exported

__all__ = ["check_agreement", "check_callbacks", "check_vjp_agreement"]

_MAIN = "main"
_PLATFORM_INDICES = (ValueType("int32"), ValueType("int64"))
_KEY_WORDS = {"key<fry>": 2, "key<rbg>": 4, "key<urbg>": 4}
_WITHOUT_TANGENTS = ("bool", "int", "uint", "float0", "key<")


def check_agreement(exported: Exported) -> None:
    """Refuses a module that is not what the record says.

    Raises:
      ArtifactError: There is no public function `main`, a function of several blocks, functions that call each other
        in a circle, or an argument or result of another number, dtype, rank or size than recorded; the message says
        which. Other functions may be public: JAX's comparators and reducers are.
      VersionError: The module's bytecode is of a later version than this release knows.
    """
    functions, recursion = module_functions(exported.mlir_module_serialized)
    main = _main(exported, functions)
    _Comparison(exported, main).check()
    check_callbacks(exported)
    if circle := recursion():
        raise _differs(exported, f"its functions call each other in a cycle: {circle}")


def check_callbacks(exported: Exported) -> None:
    """Refuses calls back into Python: what they call is in the process that exported; no option allows them.

    Raises:
      ArtifactError: Names the targets.
    """
    module = exported.mlir_module_serialized
    if b"callback" not in module:
        return
    if found := [target for target in custom_call_targets(module) if is_callback(target)]:
        raise ArtifactError(
            f"'{exported.fun_name}' calls back into the Python process that exported it, which is another one: "
            f"{', '.join(found)}\n  remedy: leave the callback out of what is exported"
        )


def _differs(exported: Exported, found: str) -> ArtifactError:
    return ArtifactError(
        f"the module of '{exported.fun_name}' is not the one that its record describes: {found}\n"
        "  remedy: export the function again; whoever wrote the artifact changed one without the other"
    )


def _main(exported: Exported, functions: Sequence[ModuleFunction]) -> ModuleFunction:
    """The function `main`."""
    names = [function.name for function in functions]
    if len(set(names)) < len(names):
        raise _differs(exported, "it has two functions of the same name")
    if _MAIN not in names:
        raise _differs(exported, f"it has no function '{_MAIN}', but {', '.join(names[:10]) or 'none'}")
    for function in functions:
        if function.block_count != 1:
            raise _differs(exported, f"its function '{function.name}' has {function.block_count} blocks")
    main = functions[names.index(_MAIN)]
    if not main.is_public:
        raise _differs(exported, f"its function '{_MAIN}' is private")
    return main


class _Comparison:
    """Of a record with the function `main`."""

    def __init__(self, exported: Exported, main: ModuleFunction) -> None:
        self._exported = exported
        self._main = main

    def check(self) -> None:
        """Compares arguments and results."""
        exported, inputs = self._exported, self._main.inputs
        has_index = len(exported.platforms) > 1
        kept = exported.module_kept_var_idx
        arguments = [(exported.in_names[index], exported.in_avals[index]) for index in kept]
        self._count("arguments", has_index, len(arguments), inputs)
        if has_index and inputs[0] not in _PLATFORM_INDICES:
            raise self._wrong("argument 0", "int32[], the platform index", inputs[0])
        self._values("argument", arguments, inputs, int(has_index))
        self._count("results", False, len(exported.out_avals), self._main.outputs)
        self._values("result", list(zip(exported.out_names, exported.out_avals, strict=True)), self._main.outputs, 0)
        if not exported.uses_global_constants and (has_index or self._is_dynamic()):
            raise _differs(exported, "it must be refined for sizes or platforms, which the record denies")

    def _is_dynamic(self) -> bool:
        return any(None in type_.shape for type_ in (*self._main.inputs, *self._main.outputs))

    def _count(self, what: str, has_index: bool, count: int, found: Sequence[ValueType]) -> None:
        tokens = len(self._exported.ordered_effects)
        if len(found) != has_index + tokens + count:
            parts = [*["the platform index"] * has_index, *[f"{tokens} tokens"] * bool(tokens), f"{count} arrays"]
            raise _differs(self._exported, f"'{_MAIN}' has {len(found)} {what}, expected {', '.join(parts)}")

    def _values(self, what: str, expected: Sequence[tuple[str, Aval]], found: Sequence[ValueType], first: int) -> None:
        tokens = len(self._exported.ordered_effects)
        for index in range(first, first + tokens):
            if found[index].dtype != TOKEN:
                raise self._wrong(f"{what} {index}", TOKEN, found[index])
        for (name, aval), type_ in zip(expected, found[first + tokens :], strict=True):
            if not _is_of(type_, aval, is_refined=self._exported.uses_global_constants):
                raise self._wrong(name, str(_type_of(aval)), type_)

    def _wrong(self, place: str, expected: str, found: ValueType) -> ArtifactError:
        return _differs(self._exported, f"{place} is {expected} in the record, and {found} in the module")


def _is_of(type_: ValueType, aval: Aval, *, is_refined: bool) -> bool:
    """Whether a value has the recorded type.

    A module that is refined before it runs may leave open what the record knows: it was exported when a size such as
    `a` with the constraint `a == 4` was not yet known to be 4. Refinement gives it the size of the argument, and
    refuses a result of another size than the caller's.
    """
    expected = _type_of(aval)
    if not is_refined or len(type_.shape) != len(expected.shape):
        return type_ == expected
    open_sizes = [None if found is None else size for found, size in zip(type_.shape, expected.shape, strict=True)]
    return type_ == ValueType(expected.dtype, tuple(open_sizes))


def _type_of(aval: Aval) -> ValueType:
    """The type of a value in a module."""
    shape = tuple(None if is_symbolic_dim(size) else size for size in aval.shape)
    name = dtype_name(aval.dtype)
    if name in _KEY_WORDS:
        return ValueType("uint32", (*shape, _KEY_WORDS[name]))
    return ValueType("bool" if name == "float0" else name, shape)


def check_vjp_agreement(exported: Exported, vjp: Exported) -> None:
    """Refuses a record that is not that of the VJP of another.

    Raises:
      ArtifactError: Its arguments are others than those of the function and cotangents of its results, or its results
        others than cotangents of the function's arguments; the message says which.
    """
    expected = (*exported.in_avals, *map(_cotangent, exported.out_avals))
    _compare(exported, "arguments", vjp.in_names, vjp.in_avals, expected)
    _compare(exported, "results", vjp.out_names, vjp.out_avals, tuple(map(_cotangent, exported.in_avals)))
    if vjp.platforms != exported.platforms:
        raise _no_vjp(exported, f"it is for {', '.join(vjp.platforms)}, not for {', '.join(exported.platforms)}")


def _cotangent(aval: Aval) -> Aval:
    has_none = dtype_name(aval.dtype).startswith(_WITHOUT_TANGENTS)
    return Aval(aval.shape, dtype_from_name("float0")) if has_none else aval


def _compare(
    exported: Exported, what: str, names: Sequence[str], found: Sequence[Aval], expected: Sequence[Aval]
) -> None:
    if len(found) != len(expected):
        raise _no_vjp(exported, f"it has {len(found)} {what}, expected {len(expected)}")
    for name, one, other in zip(names, found, expected, strict=True):
        if str(one) != str(other):
            raise _no_vjp(exported, f"{name} is {one}, expected {other}")


def _no_vjp(exported: Exported, found: str) -> ArtifactError:
    return ArtifactError(
        f"the artifact has a VJP that is not of '{exported.fun_name}': {found}\n"
        "  remedy: export the function again, and write it with serialize(vjp_order=)"
    )
