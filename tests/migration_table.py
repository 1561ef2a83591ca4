"""What users of jax2tf and `jax.export` have, and what it is here: the tables of docs/migration.md.

    python tests/migration_table.py    writes them into the page

`test_migration_page.py` holds the tables against the installed JAX (its names and signatures) and against ours, and
runs each line that the page says to write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "migration.md"


@dataclass(frozen=True)
class Name:
    """A name of theirs.

    Attributes:
      was: Without the module, such as `convert` or `Exported.in_avals`.
      now: Ours, such as `jaxtf.convert.convert`.
      note: What else there is, or what differs.
      line: What to write; it runs in a test.
      same: The parameters that have the same name and default here.
      other: The parameters that differ, each with what to do.
      lines: For some of these, what to write.
    """

    was: str
    now: str
    note: str = ""
    line: str = ""
    same: tuple[str, ...] = ()
    other: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Module:
    """A module of theirs.

    Attributes:
      name: Its full name.
      names: What it has.
      until: The newest JAX of those that were read that has it; None if the installed one has.
    """

    name: str
    names: Sequence[Name]
    until: str | None = None


@dataclass(frozen=True)
class Idiom:
    """Some lines that programs have.

    Attributes:
      was: What they have.
      line: What to write; it runs in a test, unless it needs another package.
      note: What happens.
      needs: The package that it needs.
    """

    was: str
    line: str
    note: str = ""
    needs: str = ""


JAX2TF = Module(
    "jax.experimental.jax2tf",
    [
        Name(
            "convert",
            "jaxtf.convert.convert",
            "also `tensorflow_version=`: writes for an older TensorFlow",
            "convert.convert(f, polymorphic_shapes=['b, _'])",
            same=(
                "fun_jax",
                "polymorphic_shapes",
                "polymorphic_constraints",
                "with_gradient",
                "native_serialization_platforms",
                "native_serialization_disabled_checks",
            ),
            other={
                "enable_xla": "`True`; `False` alone is graph mode, as up to JAX 0.6. Newer ones ignore it",
                "native_serialization": "`False` is graph mode, as up to JAX 0.6. Newer ones ignore it",
            },
            lines={
                "enable_xla": "convert.convert(f, enable_xla=False)",
                "native_serialization": "convert.convert(f, native_serialization=False)",
            },
        ),
        Name(
            "call_tf",
            "jaxtf.calltf.call_tf",
            "also forward mode, `vmap`, eager calls without copies",
            "calltf.call_tf(tf.math.sin)(x)",
            same=("callable_tf", "has_side_effects", "ordered", "output_shape_dtype", "call_tf_graph"),
        ),
        Name(
            "eval_polymorphic_shape",
            "jaxtf.convert.eval_polymorphic_shape",
            "also `polymorphic_constraints=`",
            "convert.eval_polymorphic_shape(f, polymorphic_shapes=['b, _'])(x)",
            same=("fun_jax", "polymorphic_shapes"),
        ),
        Name("dtype_of_val", "jaxtf.convert.dtype_of_val", "", "convert.dtype_of_val(3.14)", same=("val",)),
        Name(
            "split_to_logical_devices",
            "jaxtf.convert.split_to_logical_devices",
            "",
            "convert.split_to_logical_devices(tf.ones((4, 2)), [1, 1])",
            same=("tensor", "partition_dimensions"),
        ),
        Name(
            "DisabledSafetyCheck",
            "jaxtf.convert.DisabledSafetyCheck",
            "also `shape_assertions()`",
            "convert.DisabledSafetyCheck.platform()",
            other={"_impl": "private: one of the three makers below"},
        ),
        Name("DisabledSafetyCheck.platform", "jaxtf.convert.DisabledSafetyCheck.platform"),
        Name("DisabledSafetyCheck.custom_call", "jaxtf.convert.DisabledSafetyCheck.custom_call", same=("target_name",)),
        Name("DisabledSafetyCheck.is_custom_call", "jaxtf.convert.DisabledSafetyCheck.is_custom_call"),
        Name(
            "PolyShape",
            "jaxtf.convert.PolyShape",
            "a text such as `'b, _'` says the same",
            "convert.convert(f, polymorphic_shapes=[convert.PolyShape('b', None)])",
            same=("dim_specs",),
        ),
    ],
)

EXPORT = Module(
    "jax.export",
    [
        Name(
            "export",
            "jaxtf.serialization.export",
            "also `tensorflow_version=`, `stablehlo_version=`, `calling_convention_version=`, "
            "`expand_linear_algebra=`; takes any function, and sizes of `jax.export` too",
            "serialization.export(jax.jit(f))(jax.ShapeDtypeStruct(shapepoly.symbolic_shape('b, 4'), np.float32))",
            same=("fun_jit", "platforms", "disabled_checks"),
            other={"_override_lowering_rules": "private; there is none"},
        ),
        Name(
            "deserialize",
            "jaxtf.serialization.deserialize",
            "reads artifacts since JAX 0.4.30, and those of jaxtf",
            "serialization.deserialize(exported.serialize())",
            same=("blob",),
        ),
        Name(
            "Exported",
            "jaxtf.serialization.Exported",
            "made by `export` and `deserialize`, by hand with `Exported.from_parts`; its `in_avals` are of a class of "
            "ours, with `shape` and `dtype`",
        ),
        Name("Exported.fun_name", "jaxtf.serialization.Exported.fun_name"),
        Name("Exported.in_tree", "jaxtf.serialization.Exported.in_tree"),
        Name(
            "Exported.in_avals", "jaxtf.serialization.Exported.in_avals", "also `in_names`: the paths of the arguments"
        ),
        Name("Exported.out_tree", "jaxtf.serialization.Exported.out_tree"),
        Name("Exported.out_avals", "jaxtf.serialization.Exported.out_avals", "also `out_names`"),
        Name(
            "Exported.in_shardings_hlo",
            "jaxtf.serialization.Exported.in_shardings_hlo",
            "upstream's is None for each argument of a new export; `in_shardings_jax(mesh)` gives shardings of JAX",
            "exported.in_shardings_hlo",
        ),
        Name(
            "Exported.out_shardings_hlo",
            "jaxtf.serialization.Exported.out_shardings_hlo",
            "likewise",
            "exported.out_shardings_hlo",
        ),
        Name("Exported.nr_devices", "jaxtf.serialization.Exported.nr_devices"),
        Name("Exported.platforms", "jaxtf.serialization.Exported.platforms"),
        Name("Exported.ordered_effects", "jaxtf.serialization.Exported.ordered_effects"),
        Name("Exported.unordered_effects", "jaxtf.serialization.Exported.unordered_effects"),
        Name("Exported.disabled_safety_checks", "jaxtf.serialization.Exported.disabled_safety_checks"),
        Name(
            "Exported.mlir_module_serialized",
            "jaxtf.serialization.Exported.mlir_module_serialized",
            "also `stablehlo_version`; `with_tensorflow_version(...)` writes it for another",
        ),
        Name("Exported.calling_convention_version", "jaxtf.serialization.Exported.calling_convention_version"),
        Name("Exported.module_kept_var_idx", "jaxtf.serialization.Exported.module_kept_var_idx"),
        Name("Exported.uses_global_constants", "jaxtf.serialization.Exported.uses_global_constants"),
        Name("Exported.mlir_module", "jaxtf.serialization.Exported.mlir_module", same=("serialized",)),
        Name("Exported.in_shardings_jax", "jaxtf.serialization.Exported.in_shardings_jax", same=("mesh",)),
        Name("Exported.out_shardings_jax", "jaxtf.serialization.Exported.out_shardings_jax", same=("mesh",)),
        Name("Exported.has_vjp", "jaxtf.serialization.Exported.has_vjp"),
        Name("Exported.vjp", "jaxtf.serialization.Exported.vjp"),
        Name(
            "Exported.serialize",
            "jaxtf.serialization.Exported.serialize",
            "`jax.export` reads it; also `format_version=`",
            same=("vjp_order",),
        ),
        Name(
            "Exported.call",
            "jaxtf.serialization.Exported.call",
            "also under `vmap` and forward mode",
            "exported.call(x)",
            same=("args", "kwargs"),
        ),
        Name(
            "DisabledSafetyCheck",
            "jaxtf.serialization.DisabledSafetyCheck",
            "also `shape_assertions()`",
            "serialization.DisabledSafetyCheck.custom_call('a_target')",
            other={"_impl": "private: one of the makers below"},
        ),
        Name("DisabledSafetyCheck.platform", "jaxtf.serialization.DisabledSafetyCheck.platform"),
        Name(
            "DisabledSafetyCheck.custom_call",
            "jaxtf.serialization.DisabledSafetyCheck.custom_call",
            same=("target_name",),
        ),
        Name("DisabledSafetyCheck.is_custom_call", "jaxtf.serialization.DisabledSafetyCheck.is_custom_call"),
        Name(
            "symbolic_shape",
            "jaxtf.shapepoly.symbolic_shape",
            "",
            "shapepoly.symbolic_shape('a, b', constraints=['a >= b'])",
            same=("shape_spec", "constraints", "scope", "like"),
        ),
        Name(
            "symbolic_args_specs",
            "jaxtf.shapepoly.symbolic_args_specs",
            "",
            "shapepoly.symbolic_args_specs([x], ['b, _'])",
            same=("args", "shapes_specs", "constraints", "scope"),
        ),
        Name(
            "SymbolicScope",
            "jaxtf.shapepoly.SymbolicScope",
            "",
            "shapepoly.SymbolicScope(['a >= b'])",
            same=("constraints_str",),
        ),
        Name("is_symbolic_dim", "jaxtf.shapepoly.is_symbolic_dim", "", "shapepoly.is_symbolic_dim(size)", same=("p",)),
        Name(
            "symbolic_dim_bounds",
            "jaxtf.shapepoly.symbolic_dim_bounds",
            "exact where the expression is linear",
            "shapepoly.symbolic_dim_bounds(size)",
            same=("dimension",),
        ),
        Name("default_export_platform", "jaxtf.serialization.default_export_platform"),
        Name(
            "minimum_supported_calling_convention_version",
            "jaxtf.serialization.minimum_supported_calling_convention_version",
        ),
        Name(
            "maximum_supported_calling_convention_version",
            "jaxtf.serialization.maximum_supported_calling_convention_version",
        ),
        Name(
            "register_namedtuple_serialization",
            "jaxtf.serialization.register_namedtuple_serialization",
            same=("nodetype", "serialized_name"),
        ),
        Name(
            "register_pytree_node_serialization",
            "jaxtf.serialization.register_pytree_node_serialization",
            same=("nodetype", "serialized_name", "serialize_auxdata", "deserialize_auxdata", "from_children"),
        ),
    ],
)

OLDER_JAX2TF = Module(
    "jax.experimental.jax2tf",
    [
        Name(
            "convert",
            "jaxtf.convert.convert",
            other={
                "experimental_native_lowering": "`native_serialization=`",
                "experimental_native_lowering_platforms": "`native_serialization_platforms=`",
                "experimental_native_lowering_strict_checks": "`native_serialization_disabled_checks=`: those to skip",
                "native_serialization_strict_checks": "`native_serialization_disabled_checks=`: those to skip",
            },
            lines={
                "experimental_native_lowering": "convert.convert(f, native_serialization=True)",
                "experimental_native_lowering_platforms": "convert.convert(f, "
                "native_serialization_platforms=('cpu', 'cuda'))",
                "experimental_native_lowering_strict_checks": "convert.convert(f, "
                "native_serialization_disabled_checks=[convert.DisabledSafetyCheck.platform()])",
            },
        ),
        Name(
            "DEFAULT_NATIVE_SERIALIZATION",
            "jaxtf.convert.DEFAULT_NATIVE_SERIALIZATION",
            "of the module `jax2tf.jax2tf`",
        ),
        Name("shape_poly.PolyShape", "jaxtf.convert.PolyShape"),
        Name("shape_poly.is_poly_dim", "jaxtf.shapepoly.is_symbolic_dim", "", "shapepoly.is_symbolic_dim(size)"),
        Name(
            "jax_export.export",
            "jaxtf.serialization.export",
            "`lowering_platform=` is `platforms=`, with one",
            "serialization.export(f, platforms=('cpu', 'cuda'))(x)",
        ),
        Name("jax_export.call_exported", "jaxtf.serialization.Exported.call", "", "exported.call(x)"),
    ],
    until="0.4.16",
)

EXPERIMENTAL_EXPORT = Module(
    "jax.experimental.export",
    [
        Name(
            "export",
            "jaxtf.serialization.export",
            "",
            "serialization.export(f, platforms=('cpu', 'cuda'))(x)",
            other={
                "fun_jax": "`fun_jit`; it need not be jitted",
                "lowering_platforms": "`platforms=`",
                "lowering_platform": "`platforms=`, with one",
            },
            same=("disabled_checks",),
        ),
        Name(
            "call", "jaxtf.serialization.Exported.call", "", "exported.call(x)", other={"exported": "the object itself"}
        ),
        Name("call_exported", "jaxtf.serialization.Exported.call", "", "exported.call(x)"),
        Name(
            "serialize",
            "jaxtf.serialization.Exported.serialize",
            "",
            "exported.serialize(vjp_order=1)",
            other={"exp": "the object itself"},
            same=("vjp_order",),
        ),
        Name("deserialize", "jaxtf.serialization.deserialize", other={"ser": "`blob`"}),
        Name("Exported", "jaxtf.serialization.Exported"),
        Name("Exported.in_shardings", "jaxtf.serialization.Exported.in_shardings"),
        Name("Exported.out_shardings", "jaxtf.serialization.Exported.out_shardings"),
        Name("Exported.lowering_platforms", "jaxtf.serialization.Exported.platforms"),
        Name("Exported.mlir_module_serialization_version", "jaxtf.serialization.Exported.calling_convention_version"),
        Name("Exported.uses_shape_polymorphism", "jaxtf.serialization.Exported.uses_global_constants"),
        Name("DisabledSafetyCheck", "jaxtf.serialization.DisabledSafetyCheck"),
        Name("default_lowering_platform", "jaxtf.serialization.default_export_platform"),
        Name(
            "minimum_supported_serialization_version",
            "jaxtf.serialization.minimum_supported_calling_convention_version",
        ),
        Name(
            "maximum_supported_serialization_version",
            "jaxtf.serialization.maximum_supported_calling_convention_version",
        ),
        Name("SymbolicScope", "jaxtf.shapepoly.SymbolicScope"),
        Name("is_symbolic_dim", "jaxtf.shapepoly.is_symbolic_dim"),
        Name("symbolic_shape", "jaxtf.shapepoly.symbolic_shape"),
        Name(
            "symbolic_args_specs",
            "jaxtf.shapepoly.symbolic_args_specs",
            "",
            "shapepoly.symbolic_args_specs([x], ['b, _'], constraints=['b >= 2'])",
            same=("args",),
            other={
                "polymorphic_shapes": "`shapes_specs`",
                "symbolic_scope": "`scope=`",
                "symbolic_constraints": "`constraints=`",
            },
        ),
        Name(
            "args_specs",
            "jaxtf.shapepoly.symbolic_args_specs",
            "",
            "shapepoly.symbolic_args_specs([x], ['b, _'])",
            same=("args",),
            other={
                "polymorphic_shapes": "`shapes_specs`",
                "get_shape_and_dtype": "pass `jax.ShapeDtypeStruct`s",
            },
        ),
        Name(
            "poly_spec",
            "jaxtf.shapepoly.symbolic_shape",
            "",
            "jax.ShapeDtypeStruct(shapepoly.symbolic_shape('b, _', like=(None, 4)), np.float32)",
        ),
        Name("poly_specs", "jaxtf.shapepoly.symbolic_args_specs", "", "shapepoly.symbolic_args_specs([x], ['b, _'])"),
    ],
    until="0.4.31",
)

SAVED_MODEL_LIB = Module(
    "jax.experimental.jax2tf.examples.saved_model_lib",
    [
        Name(
            "convert_and_save_model",
            "jaxtf.convert.save_model",
            "`install_as_jax2tf()` has it under the old name",
            "convert.save_model(predict, params, folder, input_signatures=[tf.TensorSpec([None, 4])], "
            "polymorphic_shapes=['b, _'])",
            same=("params",),
            other={
                "jax_fn": "`fun_jax`; it may take several inputs",
                "model_dir": "`path`",
                "input_signatures": "one specification for each input; several signatures are a dict by name",
                "polymorphic_shapes": "a list, with one entry for each input",
                "with_gradient": "`gradient_order=1`, which is the default; 0 for none",
                "enable_xla": "`enable_xla=`; False alone is graph mode",
                "compile_model": "compile what is loaded: XLA runs the one operation of native mode anyway",
                "saved_model_options": "by hand: the third idiom below",
            },
            lines={
                "input_signatures": "convert.save_model(predict, params, folder, input_signatures="
                "{'serving_default': [tf.TensorSpec([2, 4])], 'five': [tf.TensorSpec([5, 4])]})",
                "with_gradient": "convert.save_model(predict, params, folder, input_signatures=[x], gradient_order=0)",
                "compile_model": "tf.function(tf.saved_model.load(saved), jit_compile=True)(x)",
            },
        )
    ],
    until="0.4.38",
)

MODULES = (JAX2TF, EXPORT, OLDER_JAX2TF, EXPERIMENTAL_EXPORT, SAVED_MODEL_LIB)

IDIOMS = (
    Idiom(
        "`tf.function(jax2tf.convert(f), autograph=False, jit_compile=True)`",
        "tf.function(convert.convert(f), jit_compile=True)(x)",
        "`autograph=False` is not needed: AutoGraph leaves it alone",
    ),
    Idiom(
        "`jax2tf.convert(lambda x: predict(params, x))`",
        "convert.convert(lambda x: predict(params, x))(x)",
        "arrays of 64 kB and more are arguments of the operation, not part of the module",
    ),
    Idiom(
        "`tf.Module` with variables, `tf.saved_model.save` with `experimental_custom_gradients=True`",
        "saved_by_hand(convert.convert(predict, polymorphic_shapes=[None, 'b, _']), params, folder, "
        "tf.saved_model.SaveOptions(experimental_custom_gradients=True))",
        "the same, with the first order of the gradient; or `save_model`",
    ),
    Idiom(
        "`jax2tf.convert(exported.call)`, `jax2tf.convert(jax.export.deserialize(blob).call)`",
        "convert.convert_exported(blob)(x)",
        "needs no JAX, and takes the symbolic sizes from the artifact; `convert(exported.call)` works too",
    ),
    Idiom(
        "`jax2tf.convert(f, enable_xla=False)`, then TFLite's converter",
        "convert.to_tflite(f, input_signature=[tf.TensorSpec([None, 4])], polymorphic_shapes=['b, _'])",
        "or as it was ([TFLite](tflite.md))",
    ),
    Idiom(
        "`tensorflowjs.converters.jax_conversion.convert_jax(...)`",
        "convert_jax(apply, params, input_signatures=[tf.TensorSpec([None, 4])], model_dir=folder, "
        "polymorphic_shapes=['(b, 4)'], strip_debug_ops=True)",
        "after `install_as_jax2tf()`. With a symbolic batch `strip_debug_ops=True` is needed: TF.js has no operation "
        "for the checks of sizes ([TF.js](tfjs.md))",
        needs="tensorflowjs",
    ),
    Idiom(
        "`jax.config.update('jax2tf_default_native_serialization', False)`, the flag, and the variable "
        "`JAX2TF_DEFAULT_NATIVE_SERIALIZATION`",
        "jax.config.update('jax2tf_default_native_serialization', True)",
        "the same",
    ),
    Idiom(
        "`--jax_export_calling_convention_version`",
        "serialization.export(f, calling_convention_version=9)(x)",
        "the same, and an argument",
    ),
    Idiom(
        "`isinstance(size, type(jax.export.symbolic_shape('a')[0]))`",
        "shapepoly.is_symbolic_dim(size)",
    ),
    Idiom("`jax.core.max_dim(a, b)`, `min_dim`", "shapepoly.max_dim(size, 2)", "JAX's take ours too"),
    Idiom(
        "`batching.primitive_batchers[call_tf_p] = ...`, from `jax.experimental.jax2tf.call_tf`",
        "jax.vmap(calltf.call_tf(tf.math.sin))(x)",
        "delete the rule: `call_tf` has one",
    ),
    Idiom(
        "`call_tf(f, output_shape_dtype=UnspecifiedOutputShapeDtype())`",
        "calltf.call_tf(tf.math.sin)(x)",
        "leave it out",
    ),
    Idiom(
        "`sys.modules['jax.experimental.jax2tf'] = ...`",
        "convert.install_as_jax2tf()",
        "[below](#libraries-that-import-jax2tf)",
    ),
)


def tables() -> str:
    """The part of the page that is generated."""
    lines: list[str] = []
    for module in MODULES:
        was = f"`{module.name}`" + (f" of JAX {module.until} and before" if module.until else "")
        lines += [f"### {was}", "", _row("name", "here", "to write"), "| --- | --- | --- |", *_names(module.names), ""]
        lines += _parameters(module.names)
    lines += ["### Idioms", "", _row("was", "to write", ""), "| --- | --- | --- |"]
    lines += [_row(idiom.was, _code(idiom.line), idiom.note) for idiom in IDIOMS]
    return "\n".join(lines) + "\n"


def _names(names: Sequence[Name]) -> Iterator[str]:
    """The rows: those with something to say, then those of the same name, in one row for each package."""
    same: dict[str, list[str]] = {}
    for name in names:
        package = name.now.removesuffix(f".{name.was}")
        if package != name.now and not name.note and not name.line:
            same.setdefault(package, []).append(f"`{name.was}`")
        else:
            yield _row(f"`{name.was}`", f"`{name.now}`" + f": {name.note}" * bool(name.note), _code(name.line))
    for package, group in same.items():
        yield _row(", ".join(group), f"of the same name in `{package}`", "")


def _parameters(names: Sequence[Name]) -> list[str]:
    """The table of parameters: those that differ, then the others in one row."""
    rows = [
        _row(f"`{name.was}({parameter}=)`", note, _code(name.lines.get(parameter, "")))
        for name in names
        for parameter, note in name.other.items()
    ]
    same = [f"`{name.was}({', '.join(name.same)})`" for name in names if name.same]
    rows += [_row(", ".join(same), "the same, with the same defaults", "")] if same else []
    return [_row("parameter", "here", "to write"), "| --- | --- | --- |", *rows, ""] if rows else []


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _code(line: str) -> str:
    return f"`{line}`" if line else ""


BEGIN, END = "<!-- tests/migration_table.py writes from here -->\n", "<!-- to here -->\n"


def page(text: str) -> str:
    """The page with the tables as they are now."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
