"""`convert_stablehlo`: a StableHLO module of any producer, as a function of TensorFlow values.

What graph mode does after export, for modules of any producer. Needs jaxlib, which reads modules, and no JAX.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import tensorflow as tf

from jaxtf.convert import _tf
from jaxtf.convert._errors import ArgumentTypeError, ConversionOptionError
from jaxtf.convert._function.checked_sizes import checked_before
from jaxtf.convert._graph.emit import Emitter
from jaxtf.convert._graph.parse import parse
from jaxtf.convert._graph.plan.plan import check, plan
from jaxtf.convert._values.arguments import refuse_specification
from jaxtf.convert._values.dtypes import as_tensor, check_range, dtype_matches
from jaxtf.convert._values.narrow import check_boundary
from jaxtf.serialization import Exported, deserialize
from jaxtf.serialization.interop import TensorType, custom_call_targets

__all__ = ["convert_stablehlo"]


@_tf.left_alone_by_autograph
def convert_stablehlo(module: Any, *, enable_xla: bool = True) -> Callable[..., Any]:
    """A function for TensorFlow values that computes the main function of a StableHLO module.

    It is a graph of TensorFlow operations, as from `convert(native_serialization=False)`; TensorFlow differentiates it
    by the gradients of its operations, where they exist. Those that are not right at some numbers are replaced; a
    SavedModel has these with `SaveOptions(experimental_custom_gradients=True)`, outside of loops and branches.

    Args:
      module: Its text, its bytecode, a portable artifact, an artifact of `jaxtf.serialization` or `jax.export`, the
        `pathlib.Path` of a file with one of these, an `Exported` of either, what `jax.jit(f).lower(...)` gives, or
        anything that prints as the text, such as a module of MLIR's bindings.
      enable_xla: Whether TensorFlow's XLA operations may be used where no regular ones do.

    Returns:
      A function of the arguments of the function `main` (of the only public one, if none has the name), in order. It
      returns one tensor, or a tuple of tensors where `main` has another number of results.

    Raises:
      ConversionOptionError: Not a module.
      ArtifactError: An artifact whose module is not the one that its record describes.
      GraphModeUnsupported: An operation that has no translation.
      ArgumentTypeError: When called: a dtype, a rank or a size that is not the argument's.

    >>> text = '''
    ... func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
    ...   %0 = stablehlo.add %x, %y : tensor<?xf32>
    ...   return %0 : tensor<?xf32>
    ... }'''
    >>> convert_stablehlo(text)(tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])).numpy()
    array([4., 6.], dtype=float32)
    """
    readable, is_exported = _readable(module)
    # What JAX exported checks the sizes of its arguments, from which all others follow.
    checks_operands = not is_exported
    try:
        program = plan(parse(readable), enable_xla, checks_operands=checks_operands, is_differentiated=True)
    except ValueError as error:
        hint = "\n  remedy: to read a file, pass pathlib.Path(...)" if _is_name_of_file(module) else ""
        raise ConversionOptionError(f"convert_stablehlo needs a StableHLO module: {error}{hint}") from error
    check(program)
    main = next(iter(program.functions.values()))
    types = [argument.type for argument in main.body.arguments]
    specifications = [tf.TensorSpec(type_.shape, type_.dtype) for type_ in types if isinstance(type_, TensorType)]
    if len(specifications) != len(types):
        raise ConversionOptionError(f"convert_stablehlo needs a module whose function '{main.name}' takes only arrays")

    result_dtypes = [value.type.dtype for value in main.body.returned if isinstance(value.type, TensorType)]

    def run(*arguments: tf.Tensor) -> tuple[tf.Tensor, ...]:
        check_boundary(main.name, (argument.dtype for argument in arguments), result_dtypes)
        emitter = Emitter(program, enable_xla, checks_operands=checks_operands, is_differentiated=True)
        return tuple(emitter.main(arguments))

    graph = tf.function(run, input_signature=specifications, autograph=False)

    def converted(*args: Any) -> Any:
        tensors = _tensors(main.name, args, specifications)
        if tf.executing_eagerly():
            results = graph(*tensors)
        else:
            results = checked_before(_checks(tensors, specifications), run(*tensors))
        return results[0] if len(results) == 1 else tuple(results)

    _tf.left_alone_by_autograph(converted)
    converted.__doc__ = f"{main.name}, converted from StableHLO by jaxtf.convert."
    return converted


def _readable(module: Any) -> tuple[bytes | str, bool]:
    """What `parse` reads, and whether JAX exported it."""
    if isinstance(module, PathLike):
        module = Path(module).read_bytes()
    if isinstance(module, bytearray | memoryview):
        module = bytes(module)
    if isinstance(module, bytes) and not module.startswith(b"ML\xefR"):
        module = _artifact_or_text(module)
    if isinstance(module, bytes) and b"StableHLO_v" in module[:64]:
        custom_call_targets(module)  # reads its frame and tables: MLIR's parser crashes on some damaged ones
    if isinstance(module, bytes | str):
        return module, False
    if isinstance(module, Exported):
        module.check_module()
    if isinstance(serialized := getattr(module, "mlir_module_serialized", None), bytes):  # also jax.export's Exported
        return serialized, True
    if callable(getattr(module, "compiler_ir", None)):  # jax.stages.Lowered
        return str(module.compiler_ir("stablehlo")), False
    return str(module), False


def _is_name_of_file(module: Any) -> bool:
    return isinstance(module, str) and "\n" not in module and len(module) < 4096 and Path(module).exists()


def _artifact_or_text(module: bytes) -> Any:
    """Bytes that are not bytecode: a text, or an artifact of an exported function."""
    try:
        text = module.decode()
    except UnicodeDecodeError:
        return deserialize(module)
    return deserialize(module) if "\0" in text else text


def _tensors(name: str, args: Sequence[Any], specifications: Sequence[tf.TensorSpec]) -> list[tf.Tensor]:
    """The arguments as tensors of the types that the function takes."""
    if len(args) != len(specifications):
        raise ArgumentTypeError(f"'{name}' takes {len(specifications)} arguments, found {len(args)}")
    tensors = []
    for index, (value, specification) in enumerate(zip(args, specifications, strict=True)):
        argument = f"argument {index} of '{name}'"
        expected = f"{argument} must be {specification.dtype.name}{specification.shape}"
        if not dtype_matches(value, specification.dtype):
            found = getattr(value, "dtype", type(value).__name__)
            raise ArgumentTypeError(f"{expected}, found {getattr(found, 'name', found)}")
        refuse_specification(value, argument.__str__)
        if type(value) is int:
            check_range(value, specification.dtype, argument)
        tensor = as_tensor(value, specification.dtype)
        if not specification.shape.is_compatible_with(tensor.shape):
            raise ArgumentTypeError(f"{expected}, found {tensor.dtype.name}{tensor.shape}")
        # In a graph it may be known less of it.
        if not tf.executing_eagerly():
            ensure = tf.ensure_shape if _are_known(tensor, specification.shape) else _tf.ensured
            tensor = ensure(tensor, specification.shape, f"shape_of_argument_{index}")
        tensors.append(tensor)
    return tensors


def _checks(tensors: Sequence[tf.Tensor], specifications: Sequence[tf.TensorSpec]) -> list[tf.Operation]:
    """The comparisons of sizes of which the graph does not know that they are equal."""
    made = zip((tensor.op for tensor in tensors), specifications, strict=True)
    return [check for check, specification in made if not _are_known(check.inputs[0], specification.shape)]


def _are_known(tensor: tf.Tensor, shape: tf.TensorShape) -> bool:
    """Whether a tensor of a graph has this shape, as far as the graph knows."""
    return bool(tensor.shape.is_subtype_of(shape))
