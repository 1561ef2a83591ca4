"""For packages of jaxtf: what `jaxtf-convert` and `jaxtf-calltf` share with this one. Not for programs.

- `export_for_graph`: a function exported for those who translate its module, operation by operation.
- `add_function`, `lowering_platforms`, `set_tokens`, `token_of`: what a lowering rule reads and sets of its context.
- `as_jitted`, `static_parameters`: any callable as one that JAX traces.
- `ArgumentTypeError`: an argument that JAX or TensorFlow cannot take.
- `argument_paths`: the path of an argument, as its caller would write it.
- `CalledFunction`: a function of another framework that a module calls by name; `lowers_by`: where some are found.
- `closed_over`: the large arrays that a function closes over, as arguments of it. `frozen`: a traced function that
  closes over copies of arrays that may be written to; `rules_hold_writable`: whether rules of derivatives hold such.
  `tracing_settings`: JAX set as it is now, later.
- `custom_call_targets`, `lapack_function`: what a module calls, from its bytes; LAPACK's name for it.
- `has_bounded_sizes`: whether sizes in a module depend on values, from its bytes.
- `is_same_structure`: whether two treedefs are equal, also in the classes of their nodes.
- `equation_line`: the line of the user's program that an equation of a jaxpr comes from. `of_one_equation`: a jaxpr of
  it alone; `is_literal`: whether an operand in it is a value.
- `lazy_names`: names that are imported at first use.
- `plain_containers`: the dicts, lists and tuples in the containers of TensorFlow and Keras; `unwrapped`: a flat pytree
  without such.
- `read_artifact`: an exported function, with its weights if the file has them.
- `require_jax`: the refusal of what needs JAX where there is none.
- `read_program`, `Reading`: a StableHLO module as plain data: a `Program` of `Function`s, `Block`s, `Operation`s and
  `Value`s, which have a `TensorType`, `TokenType` or `TupleType`. `operations_of`, `read_in`, `uses_in`,
  `callee_of`, `of_chlo`: what is in one; `for_platform`: it on one of its platforms; `scope_of`: a location's name.
- `BoundOperation`, `refusal_text`, `COLLECTIVES`, `EFFECTS`, `PYTHON_CALLBACKS`: what those who translate operations
  one by one have in common.
- `requirements` (of `Requirement`s), `has_requirements`: what sizes of operands have to be.
- `operations_of_complex_function`: what is written out for the parts of complex numbers.
- `pointwise_functions`, `operations_within`, `BROADCASTS`: functions of each element that choose by `select`.
- `single_operation`, `extreme_direction`, `comparator_keys` (of `Key`s), `comparison_direction`: what one computes;
  `counts_in`: whether indices of a dtype ascend; `defining`: the operations that the values of a block come from;
  `dtype_of_products`: in which dtype products are summed.
- `users_line`, `users_files`: the line of the user's program in a stack, and which of its files are the user's.
- `is_differentiable`, `is_zero`, `pushed_forward`, `linear_jvp`, `linear_transpose`, `transpose_at_zero`: the rules of
  differentiation of a primitive that calls what JAX cannot see into. `vjp_function`: the VJP of a traced function;
  `vjp_unavailable`: the error where its export raises `jax.errors.UnexpectedTracerError`.
- `rewrite_for_xla`: writes operations of a module otherwise where a release of XLA does not compute what they say.
- `computes_by_devices`, `misread_by_xla`: what in the bytes of a module XLA does not compute as it says.
- `shape_assertion`: a check of sizes in a module, by which it is refused with a text.
- `specification`: of an argument, with the dtype that it has.
- `tracing_configuration`: a hashable value that differs whenever JAX would trace or lower differently;
  `calling_configuration`: likewise for a function that JAX has not traced yet.
- `vary_alike`, `varying_like`: calls inside of `jax.shard_map`.

These names keep their parameters and meaning as long as the minor version of jaxtf-serialization stays, which
jaxtf-convert and jaxtf-calltf declare; a program that uses them pins it.
"""

from typing import TYPE_CHECKING

from jaxtf.serialization._lazy import lazy_names

if TYPE_CHECKING:
    from jaxtf.serialization._bytecode.for_xla import computes_by_devices, misread_by_xla
    from jaxtf.serialization._bytecode.portable import custom_call_targets, has_bounded_sizes
    from jaxtf.serialization._entrances import export_for_graph
    from jaxtf.serialization._errors import ArgumentTypeError
    from jaxtf.serialization._export.closed_over import closed_over
    from jaxtf.serialization._export.dimensions import shape_assertion
    from jaxtf.serialization._export.frozen import frozen
    from jaxtf.serialization._export.held_by_rules import rules_hold_writable
    from jaxtf.serialization._export.jaxprs import equation_line, lowers_by
    from jaxtf.serialization._export.jitted import as_jitted, static_parameters
    from jaxtf.serialization._export.lapack import lapack_function
    from jaxtf.serialization._export.unlowered import vjp_unavailable
    from jaxtf.serialization._jax import (
        add_function,
        calling_configuration,
        is_literal,
        lowering_platforms,
        of_one_equation,
        set_tokens,
        token_of,
        tracing_configuration,
        tracing_settings,
    )
    from jaxtf.serialization._jax_values.avals import is_differentiable, specification
    from jaxtf.serialization._jax_values.containers import unwrapped
    from jaxtf.serialization._jax_values.derivatives import (
        is_zero,
        linear_jvp,
        linear_transpose,
        pushed_forward,
        transpose_at_zero,
        vjp_function,
    )
    from jaxtf.serialization._jax_values.paths import argument_paths
    from jaxtf.serialization._jax_values.varying import vary_alike, varying_like
    from jaxtf.serialization._program.bound import COLLECTIVES, EFFECTS, PYTHON_CALLBACKS, BoundOperation
    from jaxtf.serialization._program.calls import callee_of
    from jaxtf.serialization._program.complex_functions import operations_of_complex_function
    from jaxtf.serialization._program.composites import of_chlo
    from jaxtf.serialization._program.for_xla import rewrite_for_xla
    from jaxtf.serialization._program.locations import scope_of
    from jaxtf.serialization._program.parse import read_program
    from jaxtf.serialization._program.platforms import for_platform
    from jaxtf.serialization._program.pointwise import BROADCASTS, operations_within, pointwise_functions
    from jaxtf.serialization._program.product_dtypes import dtype_of_products
    from jaxtf.serialization._program.program import (
        Block,
        Function,
        Operation,
        Program,
        TensorType,
        TokenType,
        TupleType,
        Value,
        operations_of,
        read_in,
        uses_in,
    )
    from jaxtf.serialization._program.reading import Reading
    from jaxtf.serialization._program.refusal import refusal_text
    from jaxtf.serialization._program.regions import (
        Key,
        comparator_keys,
        comparison_direction,
        counts_in,
        defining,
        extreme_direction,
        single_operation,
    )
    from jaxtf.serialization._program.requirements import Requirement, has_requirements, requirements
    from jaxtf.serialization._record.called import CalledFunction
    from jaxtf.serialization._record.containers import plain_containers
    from jaxtf.serialization._record.locations import users_files, users_line
    from jaxtf.serialization._record.treedefs import is_same_structure
    from jaxtf.serialization._requires import require_jax
    from jaxtf.serialization._weights.model import read_artifact

__all__ = [
    "BROADCASTS",
    "COLLECTIVES",
    "EFFECTS",
    "PYTHON_CALLBACKS",
    "ArgumentTypeError",
    "Block",
    "BoundOperation",
    "CalledFunction",
    "Function",
    "Key",
    "Operation",
    "Program",
    "Reading",
    "Requirement",
    "TensorType",
    "TokenType",
    "TupleType",
    "Value",
    "add_function",
    "argument_paths",
    "as_jitted",
    "callee_of",
    "calling_configuration",
    "closed_over",
    "comparator_keys",
    "comparison_direction",
    "computes_by_devices",
    "counts_in",
    "custom_call_targets",
    "defining",
    "dtype_of_products",
    "equation_line",
    "export_for_graph",
    "extreme_direction",
    "for_platform",
    "frozen",
    "has_bounded_sizes",
    "has_requirements",
    "is_differentiable",
    "is_literal",
    "is_same_structure",
    "is_zero",
    "lapack_function",
    "lazy_names",
    "linear_jvp",
    "linear_transpose",
    "lowering_platforms",
    "lowers_by",
    "misread_by_xla",
    "of_chlo",
    "of_one_equation",
    "operations_of",
    "operations_of_complex_function",
    "operations_within",
    "plain_containers",
    "pointwise_functions",
    "pushed_forward",
    "read_artifact",
    "read_in",
    "read_program",
    "refusal_text",
    "require_jax",
    "requirements",
    "rewrite_for_xla",
    "rules_hold_writable",
    "scope_of",
    "set_tokens",
    "shape_assertion",
    "single_operation",
    "specification",
    "static_parameters",
    "token_of",
    "tracing_configuration",
    "tracing_settings",
    "transpose_at_zero",
    "unwrapped",
    "users_files",
    "users_line",
    "uses_in",
    "vary_alike",
    "varying_like",
    "vjp_function",
    "vjp_unavailable",
]

# The module of each name; a test holds it against the imports above.
_MODULES = {
    "ArgumentTypeError": "_errors",
    "Block": "_program.program",
    "BoundOperation": "_program.bound",
    "BROADCASTS": "_program.pointwise",
    "COLLECTIVES": "_program.bound",
    "CalledFunction": "_record.called",
    "EFFECTS": "_program.bound",
    "Function": "_program.program",
    "Key": "_program.regions",
    "Operation": "_program.program",
    "PYTHON_CALLBACKS": "_program.bound",
    "Program": "_program.program",
    "Reading": "_program.reading",
    "Requirement": "_program.requirements",
    "TensorType": "_program.program",
    "TokenType": "_program.program",
    "TupleType": "_program.program",
    "Value": "_program.program",
    "add_function": "_jax",
    "argument_paths": "_jax_values.paths",
    "as_jitted": "_export.jitted",
    "closed_over": "_export.closed_over",
    "callee_of": "_program.calls",
    "of_chlo": "_program.composites",
    "operations_of_complex_function": "_program.complex_functions",
    "operations_within": "_program.pointwise",
    "pointwise_functions": "_program.pointwise",
    "calling_configuration": "_jax",
    "comparator_keys": "_program.regions",
    "comparison_direction": "_program.regions",
    "computes_by_devices": "_bytecode.for_xla",
    "counts_in": "_program.regions",
    "custom_call_targets": "_bytecode.portable",
    "defining": "_program.regions",
    "dtype_of_products": "_program.product_dtypes",
    "equation_line": "_export.jaxprs",
    "export_for_graph": "_entrances",
    "extreme_direction": "_program.regions",
    "for_platform": "_program.platforms",
    "frozen": "_export.frozen",
    "rules_hold_writable": "_export.held_by_rules",
    "has_bounded_sizes": "_bytecode.portable",
    "has_requirements": "_program.requirements",
    "is_differentiable": "_jax_values.avals",
    "is_literal": "_jax",
    "is_same_structure": "_record.treedefs",
    "is_zero": "_jax_values.derivatives",
    "lapack_function": "_export.lapack",
    "linear_jvp": "_jax_values.derivatives",
    "linear_transpose": "_jax_values.derivatives",
    "lowering_platforms": "_jax",
    "lowers_by": "_export.jaxprs",
    "misread_by_xla": "_bytecode.for_xla",
    "of_one_equation": "_jax",
    "operations_of": "_program.program",
    "plain_containers": "_record.containers",
    "pushed_forward": "_jax_values.derivatives",
    "read_artifact": "_weights.model",
    "read_in": "_program.program",
    "read_program": "_program.parse",
    "refusal_text": "_program.refusal",
    "require_jax": "_requires",
    "requirements": "_program.requirements",
    "rewrite_for_xla": "_program.for_xla",
    "scope_of": "_program.locations",
    "set_tokens": "_jax",
    "shape_assertion": "_export.dimensions",
    "single_operation": "_program.regions",
    "specification": "_jax_values.avals",
    "static_parameters": "_export.jitted",
    "token_of": "_jax",
    "tracing_configuration": "_jax",
    "tracing_settings": "_jax",
    "transpose_at_zero": "_jax_values.derivatives",
    "unwrapped": "_jax_values.containers",
    "users_files": "_record.locations",
    "users_line": "_record.locations",
    "uses_in": "_program.program",
    "vary_alike": "_jax_values.varying",
    "varying_like": "_jax_values.varying",
    "vjp_function": "_jax_values.derivatives",
    "vjp_unavailable": "_export.unlowered",
}

__getattr__, __dir__ = lazy_names(globals(), _MODULES, prefix="jaxtf.serialization.")
