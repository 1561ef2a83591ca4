"""Rewriting removed custom calls; the numbers they give are compared in test_corpus.py with those of old releases."""

import pytest

from jaxtf.serialization._errors import ArtifactError

jax = pytest.importorskip("jax")

from jax.extend.mlir import ir  # noqa: E402
from jax.interpreters import mlir  # noqa: E402

from jaxtf.serialization._program.portable_artifact import module_text  # noqa: E402
from jaxtf.serialization._program.removed_calls import NOT_REWRITTEN, REWRITTEN  # noqa: E402
from jaxtf.serialization._program.replaced_calls import rewrite_removed_custom_calls  # noqa: E402

LAYOUT = "dense<[0, 1]> : tensor<2xindex>"
SCALAR = "dense<> : tensor<0xindex>"

CHOLESKY = f"""
func.func public @main(%a: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>) {{
  %lower = stablehlo.constant dense<LOWER> : tensor<i32>
  %batch = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %0:2 = stablehlo.custom_call @lapack_spotrf(%lower, %batch, %n, %a) {{
    api_version = 2 : i32, mhlo.sharding = "{{replicated}}",
    operand_layouts = [{SCALAR}, {SCALAR}, {SCALAR}, {LAYOUT}], result_layouts = [{LAYOUT}, {SCALAR}],
    output_operand_aliases = [#stablehlo.output_operand_alias<
      output_tuple_indices = [0], operand_index = 3, operand_tuple_indices = []>]
  }} : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<3x3xf32>, tensor<i32>
}}
"""

QR = """
func.func public @main(%a: tensor<?x3x2xf32>, %sizes: tensor<3xi32>, %of_tau: tensor<2xi32>, %of_info: tensor<1xi32>,
                       %of_work: tensor<1xi32>, %batch: tensor<i32>) -> (tensor<?x2xf32>, tensor<?xi32>) {
  %m = stablehlo.constant dense<3> : tensor<i32>
  %n = stablehlo.constant dense<2> : tensor<i32>
  %0:4 = stablehlo.custom_call @lapack_sgeqrf(%batch, %m, %n, %n, %a, %sizes, %of_tau, %of_info, %of_work) {
    api_version = 2 : i32, indices_of_shape_operands = dense<[5, 6, 7, 8]> : tensor<4xi64>
  } : (tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<?x3x2xf32>, tensor<3xi32>, tensor<2xi32>,
        tensor<1xi32>, tensor<1xi32>) -> (tensor<?x3x2xf32>, tensor<?x2xf32>, tensor<?xi32>, tensor<64xf32>)
  return %0#1, %0#2 : tensor<?x2xf32>, tensor<?xi32>
}
"""


def parsed(text):
    context = mlir.make_ir_context()
    with context, ir.Location.unknown(context):
        return ir.Module.parse(text)


def cholesky(lower=1):
    return CHOLESKY.replace("LOWER", str(lower))


def calls(module):
    found = []

    def visit(operation):
        op = operation.operation
        if op.name == "stablehlo.custom_call":
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


@pytest.mark.parametrize(("lower", "letter"), [(1, "L"), (0, "U")])
def test_scalar_flags_become_attributes(lower, letter):
    module = parsed(cholesky(lower))
    assert rewrite_removed_custom_calls(module) == ("lapack_spotrf",)
    module.operation.verify()
    [call] = calls(module)
    assert ir.StringAttr(call.attributes["call_target_name"]).value == "lapack_spotrf_ffi"
    assert str(call.attributes["mhlo.backend_config"]) == f"{{uplo = {ord(letter)} : ui8}}"
    assert len(call.operands) == 1
    assert len(ir.ArrayAttr(call.attributes["operand_layouts"])) == 1


def test_what_is_not_about_the_routine_stays():
    module = parsed(cholesky())
    rewrite_removed_custom_calls(module)
    [call] = calls(module)
    assert ir.StringAttr(call.attributes["mhlo.sharding"]).value == "{replicated}"


def test_a_module_without_such_calls_is_left_as_it_is():
    module = parsed(cholesky())
    rewrite_removed_custom_calls(module)
    before = module_text(module)
    assert rewrite_removed_custom_calls(module) == ()
    assert module_text(module) == before


def test_sizes_of_symbolic_results_go_along_and_success_is_zero():
    module = parsed(QR)
    assert rewrite_removed_custom_calls(module) == ("lapack_sgeqrf",)
    module.operation.verify()
    [call] = calls(module)
    assert len(call.operands) == 3
    assert list(ir.DenseIntElementsAttr(call.attributes["indices_of_shape_operands"])) == [1, 2]
    assert "stablehlo.dynamic_broadcast_in_dim" in module_text(module)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "%lower = stablehlo.constant dense<1> : tensor<i32>",
            "%one = stablehlo.constant dense<1> : tensor<i32>\n  %lower = stablehlo.negate %one : tensor<i32>",
            "'lower' of a call of 'lapack_spotrf' is not a constant; JAX wrote one",
        ),
        (
            "@lapack_spotrf(",
            "@lapack_sgetrf(",
            "a call of 'lapack_sgetrf' with 4 operands and 2 results; JAX wrote 4 and 3",
        ),
    ],
)
def test_calls_that_jax_did_not_write_are_refused(old, new, message):
    text = cholesky()
    assert old in text
    with pytest.raises(ArtifactError, match=message):
        rewrite_removed_custom_calls(parsed(text.replace(old, new)))


def test_flags_that_lapack_does_not_have_are_refused():
    text = """
func.func public @main(%a: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %i = stablehlo.constant dense<1> : tensor<i32>
  %job = stablehlo.constant dense<200> : tensor<ui8>
  %0:6 = stablehlo.custom_call @lapack_sgees(%i, %i, %job, %job, %a) {api_version = 2 : i32}
    : (tensor<i32>, tensor<i32>, tensor<ui8>, tensor<ui8>, tensor<3x3xf32>)
    -> (tensor<3x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3x3xf32>, tensor<i32>, tensor<i32>)
  return %0#0 : tensor<3x3xf32>
}"""
    with pytest.raises(ArtifactError, match="a call of 'lapack_sgees' with flags that LAPACK does not have"):
        rewrite_removed_custom_calls(parsed(text))
    assert rewrite_removed_custom_calls(parsed(text.replace("200", "78"))) == ("lapack_sgees",)


def test_a_used_workspace_is_refused():
    text = QR.replace(
        "return %0#1, %0#2 : tensor<?x2xf32>, tensor<?xi32>", "return %0#1, %0#3 : tensor<?x2xf32>, tensor<64xf32>"
    )
    text = text.replace("-> (tensor<?x2xf32>, tensor<?xi32>) {", "-> (tensor<?x2xf32>, tensor<64xf32>) {")
    with pytest.raises(ArtifactError, match="a workspace of 'lapack_sgeqrf' is used"):
        rewrite_removed_custom_calls(parsed(text))


def test_a_triangular_system_with_a_factor_is_refused():
    scalars = "\n".join(f"  %{i} = stablehlo.constant dense<1> : tensor<i32>" for i in range(7))
    text = f"""
func.func public @main(%a: tensor<3x3xf32>, %b: tensor<3x3xf32>) -> tensor<3x3xf32> {{
{scalars}
  %alpha = stablehlo.constant dense<2.0> : tensor<f32>
  %x = stablehlo.custom_call @blas_strsm(%0, %1, %2, %3, %4, %5, %6, %alpha, %a, %b) {{api_version = 2 : i32}}
    : ({"tensor<i32>, " * 7}tensor<f32>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %x : tensor<3x3xf32>
}}"""
    with pytest.raises(ArtifactError, match="a call of 'blas_strsm' with a factor other than 1"):
        rewrite_removed_custom_calls(parsed(text))
    with pytest.raises(ArtifactError, match="a call of 'blas_strsm' with a factor other than 1"):
        rewrite_removed_custom_calls(parsed(text.replace("dense<2.0>", "{a = dense<1.0> : tensor<f32>} dense<2.0>")))
    assert rewrite_removed_custom_calls(parsed(text.replace("2.0", "1.0"))) == ("blas_strsm",)


def test_a_typed_call_is_rewritten_only_if_it_has_an_operand_too_many():
    text = """
func.func public @main(%a: tensor<3x3xf32>, %b: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %alpha = stablehlo.constant dense<1.0> : tensor<f32>
  %x = stablehlo.custom_call @lapack_strsm_ffi(%a, %b, %alpha) {mhlo.backend_config = {diag = 78 : ui8}}
    : (tensor<3x3xf32>, tensor<3x3xf32>, tensor<f32>) -> tensor<3x3xf32>
  return %x : tensor<3x3xf32>
}"""
    module = parsed(text)
    assert rewrite_removed_custom_calls(module) == ("lapack_strsm_ffi",)
    [call] = calls(module)
    assert len(call.operands) == 2
    assert str(call.attributes["mhlo.backend_config"]) == "{diag = 78 : ui8}"
    assert rewrite_removed_custom_calls(module) == ()


def test_the_typed_targets_are_those_that_jaxlib_registers():
    from jaxlib import lapack

    registered = {name for targets in lapack.registrations().values() for name, *_ in targets}
    assert {routine.target for routine in REWRITTEN.values()} <= registered
    typed = {target for target, routine in REWRITTEN.items() if routine.attributes is None}
    assert set(REWRITTEN) & registered == typed
    assert not set(REWRITTEN) & set(NOT_REWRITTEN)
