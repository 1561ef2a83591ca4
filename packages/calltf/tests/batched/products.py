"""Products, linear algebra, Fourier transforms."""

import numpy as np

from .operation import Operation, of

EQUATIONS = (
    *("ij,jk->ik", "i,j->ij", "bij,bjk->bik", "ij,ij->", "i,i->i", "bij,j->ib", "ij->ji", "ii->i"),
    *("...i->...", "...ij,...jk->...ik", "...i,i...->..."),
)


@of("MatMul")
def matmul(name, d):
    rows, inner, columns = d.size(), d.size(), d.size()
    turned, other = d.chance(), d.chance()
    operands = [d.operand(_matrix(rows, inner, turned)), d.operand(_matrix(inner, columns, other))]
    return Operation(name, operands, {"transpose_a": turned, "transpose_b": other})


@of("BatchMatMul", "BatchMatMulV2")
def batch_matmul(name, d):
    rows, inner, columns = d.size(), d.size(), d.size()
    turned, other, dtype = d.chance(), d.chance(), d.one_of("float32", "complex64")
    lead, lead_other = d.broadcast(2) if name == "BatchMatMulV2" else [d.shape(0, 2)] * 2
    operands = [
        d.operand((*lead, *_matrix(rows, inner, turned)), dtype),
        d.operand((*lead_other, *_matrix(inner, columns, other)), dtype),
    ]
    return Operation(name, operands, {"adj_x": turned, "adj_y": other})


def _matrix(rows, columns, turned):
    return (columns, rows) if turned else (rows, columns)


@of("Einsum")
def einsum(name, d):
    equation = d.one_of(*EQUATIONS)
    sizes, more = {letter: d.size() for letter in "bijk"}, d.shape(0, 2)

    def operand(term):
        head, dots, tail = term.partition("...")
        return d.operand((*(sizes[c] for c in head), *(more if dots else ()), *(sizes[c] for c in tail)))

    operands = [operand(term) for term in equation.split("->")[0].split(",")]
    return Operation(name, [operands], {"equation": equation})


@of("BiasAdd", "BiasAddGrad")
def bias(name, d):
    layout = d.one_of("NHWC", "NCHW")
    shape = d.shape(2 if layout == "NHWC" else 3, 5)
    count = shape[-1] if layout == "NHWC" else shape[1]
    operands = [d.operand(shape), d.operand((count,))]
    return Operation(name, operands if name == "BiasAdd" else operands[:1], {"data_format": layout})


@of("Cholesky", "MatrixInverse", "SelfAdjointEigV2")
def of_matrices(name, d):
    attributes = {"MatrixInverse": {"adjoint": d.chance()}, "SelfAdjointEigV2": {"compute_v": d.chance()}}.get(name, {})
    is_short = not attributes.get("compute_v", True)
    return Operation(name, [_definite(d, d.shape(0, 1), d.size())], attributes, (0,) if is_short else ())


@of("MatrixSolve", "MatrixTriangularSolve")
def solve(name, d):
    size, columns = d.size(), d.size(1, 2)
    attributes = {"adjoint": d.chance()}
    if name == "MatrixSolve":
        lead = other = d.shape(0, 1)
    else:
        lead, other = d.broadcast(2)
        attributes["lower"] = d.chance()
    return Operation(name, [_definite(d, lead, size), d.operand((*other, size, columns))], attributes)


def _definite(d, lead, size):
    def matrices():
        root = d.numbers((*lead, size, size))
        return (root @ np.swapaxes(root, -1, -2) + 8 * np.eye(size)).astype("float32")

    return d.made(matrices)


@of(*(f"{kind}FFT{dimensions}" for kind in ("", "I") for dimensions in ("", "2D", "3D")))
def fourier(name, d):
    return Operation(name, [d.operand((*d.shape(0, 1), *d.shape(*[_dimensions(name)] * 2)), "complex64")])


@of(*(f"{kind}RFFT{dimensions}" for kind in ("", "I") for dimensions in ("", "2D", "3D")))
def fourier_of_real(name, d):
    inner = d.shape(*[_dimensions(name)] * 2, low=2, high=4)
    if name[0] == "R":
        return Operation(name, [d.operand((*d.shape(0, 1), *inner)), d.fixed(inner)])
    length = [*inner[:-1], d.one_of(2 * inner[-1] - 2, 2 * inner[-1] - 1)]
    return Operation(name, [d.operand((*d.shape(0, 1), *inner), "complex64"), d.fixed(length)])


def _dimensions(name):
    return int(name[-2]) if name.endswith("D") else 1
