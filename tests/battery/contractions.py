"""Products, convolutions, pooling and linear algebra."""

import jax
import jax.numpy as jnp
from jax import lax

from .entry import NO_INDEX, PADDING_OF_SYMBOLIC_SIZE, Entry, gradient_refused, polymorphic, ramp, refused


def convolution(strides=(1, 1), padding="SAME", **options):
    """A two-dimensional convolution of (batch, height, width, channels) with a 3x3 kernel of 2 channels."""

    def convolve(x):
        kernel = ramp(3, 3, x.shape[-1] // options.get("feature_group_count", 1), 2, dtype=x.dtype)
        return lax.conv_general_dilated(
            x, kernel, strides, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"), **options
        )

    return convolve


def convolution_1d(stride=1, padding="SAME", **options):
    """A one-dimensional convolution of (batch, channels, width) with a kernel of 3 places and 2 channels."""

    def convolve(x):
        return lax.conv_general_dilated(x, ramp(2, x.shape[1], 3, dtype=x.dtype), (stride,), padding, **options)

    return convolve


def transposed(strides, padding):
    return lambda x: lax.conv_transpose(x, ramp(3, 3, 2, 1, dtype=x.dtype), strides, padding)


def pooled(initial, operation, window, strides, padding="VALID"):
    return lambda x: lax.reduce_window(x, initial, operation, window, strides, padding)


def averaged(x):
    """Average pooling that divides by the number of places that exist."""
    sums = lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 2), "SAME")
    return sums / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 3), (1, 2), "SAME")


def positive_definite(x):
    """Symmetric matrices with eigenvalues of 1 and more, well separated from 0."""
    return jnp.einsum("...ij,...kj->...ik", x, x) + jnp.eye(x.shape[-2], dtype=x.dtype)


def attention(x):
    q, k, v = jnp.split(x @ ramp(4, 12, dtype=x.dtype), 3, axis=-1)
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(x.shape[1]))
    return jnp.einsum("bqk,bkd->bqd", weights, v)


def causal_attention(x):
    """Several heads, a causal mask and a residual, over a symbolic sequence."""
    batch, length, _ = x.shape
    q, k, v = ((x @ w).reshape(batch, length, 2, 2).transpose(0, 2, 1, 3) for w in ramp(3, 4, 4, dtype=x.dtype))
    mask = jnp.tril(jnp.ones((length, length), bool))
    scores = jnp.where(mask, jnp.einsum("bhqd,bhkd->bhqk", q, k), -1e9)
    mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)
    return x + mixed.transpose(0, 2, 1, 3).reshape(batch, length, -1)


ENTRIES: dict[str, Entry] = {
    # products
    "matmul": polymorphic(lambda x, y: x @ y, "b, d", "d, n"),
    "matmul with the transpose": polymorphic(lambda x: x @ x.T, "b, d"),
    "matmul of batches": polymorphic(jnp.matmul, "b, 2, d", "b, d, 3"),
    "matmul broadcasting batches": polymorphic(jnp.matmul, "b, 2, d", "d, 3"),
    "dot, vdot and inner": polymorphic(lambda x, y: (jnp.dot(x, y), jnp.vdot(x, y), jnp.inner(x, y)), "b", "b"),
    "outer": polymorphic(jnp.outer, "b", "d"),
    "kron": polymorphic(jnp.kron, "b, 2", "d, 3"),
    "cross": polymorphic(jnp.cross, "b, 3", "b, 3"),
    "tensordot over one axis": polymorphic(lambda x, y: jnp.tensordot(x, y, axes=1), "b, d", "d, 2, 3"),
    "tensordot over two axes": polymorphic(
        lambda x, y: jnp.tensordot(x, y, axes=[[1, 2], [0, 1]]), "b, d, 2", "d, 2, 3"
    ),
    "dot_general": polymorphic(lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))), "b, 2, d", "b, d, n"),
    "multi_dot": polymorphic(lambda x, y: jnp.linalg.multi_dot([x, y, x]), "b, 4", "4, b"),
    "related sizes": polymorphic(lambda x, y: x @ y.T, "b, 2*d", "2*d + 1, 2*d"),
    "matmul of integers": polymorphic(lambda x, y: x @ y, "b, d", "d, 3", dtypes="int32"),
    "matmul of bfloat16 in float32": polymorphic(
        lambda x, y: jnp.matmul(x, y, preferred_element_type=jnp.float32), "b, d", "d, 3", dtypes="bfloat16"
    ),
    # einsum
    "einsum matrix product": polymorphic(lambda x, y: jnp.einsum("ij,jk->ik", x, y), "b, d", "d, n"),
    "einsum implicit": polymorphic(lambda x, y: jnp.einsum("ij,jk", x, y), "b, d", "d, n"),
    "einsum outer": polymorphic(lambda x, y: jnp.einsum("i,j->ij", x, y), "b", "d"),
    "einsum trace and diagonal": polymorphic(lambda x: (jnp.einsum("ii", x), jnp.einsum("ii->i", x)), "b, b"),
    "einsum with an ellipsis": polymorphic(lambda x, y: jnp.einsum("...ij,...jk->...ik", x, y), "b, n, 2, d", "d, 3"),
    "einsum transpose": polymorphic(lambda x: jnp.einsum("ijk->kij", x), "b, d, 3"),
    "einsum sum": polymorphic(lambda x: jnp.einsum("ij->j", x), "b, d"),
    "einsum of three": polymorphic(lambda x, y, z: jnp.einsum("ij,jk,kl->il", x, y, z), "b, d", "d, n", "n, 2"),
    "einsum of heads": polymorphic(lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y), "b, n, 2, 3", "b, m, 2, 3"),
    "einsum bilinear": polymorphic(lambda x, w, y: jnp.einsum("bi,ijk,bj->bk", x, w, y), "b, d", "d, 3, 2", "b, 3"),
    # convolutions
    "conv SAME": polymorphic(convolution(), "b, h, w, 1"),
    "conv VALID": polymorphic(convolution(padding="VALID"), "b, h, w, 1", constraints=("h >= 3", "w >= 3")),
    "conv SAME with strides": polymorphic(convolution((2, 2)), "b, 2*h, 2*w, 1"),
    "conv VALID with strides": gradient_refused(
        PADDING_OF_SYMBOLIC_SIZE, polymorphic(convolution((2, 3), "VALID"), "b, h, w, 1")
    ),
    "conv with padding given": gradient_refused(
        PADDING_OF_SYMBOLIC_SIZE, polymorphic(convolution((2, 1), ((1, 2), (0, 1))), "b, h, w, 1")
    ),
    "conv with a dilated kernel": polymorphic(convolution(rhs_dilation=(2, 2)), "b, h, w, 1"),
    "conv with a dilated input": polymorphic(convolution(padding=((1, 1), (2, 0)), lhs_dilation=(2, 2)), "b, h, w, 1"),
    "conv in groups": polymorphic(convolution(feature_group_count=2), "b, h, w, 4"),
    "conv of a symbolic batch": polymorphic(convolution((2, 2)), "b, 8, 8, 2"),
    "conv of one dimension SAME": polymorphic(convolution_1d(), "b, 2, n"),
    "conv of one dimension VALID with a stride": gradient_refused(
        PADDING_OF_SYMBOLIC_SIZE, polymorphic(convolution_1d(2, "VALID"), "b, 2, n")
    ),
    "conv of one dimension dilated": polymorphic(convolution_1d(padding=((4, 0),), rhs_dilation=(2,)), "b, 2, n"),
    "conv with a symbolic kernel": gradient_refused(
        PADDING_OF_SYMBOLIC_SIZE,
        polymorphic(
            lambda x, k: lax.conv_general_dilated(x, k, (1,), "VALID"), "b, 2, n", "3, 2, k", constraints=("n >= k",)
        ),
    ),
    "conv with symbolic channels": polymorphic(
        lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME"), "b, d, n", "m, d, 3"
    ),
    "conv_transpose SAME": polymorphic(transposed((2, 2), "SAME"), "b, h, w, 2"),
    "conv_transpose VALID": polymorphic(transposed((2, 2), "VALID"), "b, h, w, 2"),
    "convolve full": refused(NO_INDEX, polymorphic(lambda x: jnp.convolve(x, ramp(3, dtype=x.dtype)), "n")),
    "convolve same": refused(
        NO_INDEX, polymorphic(lambda x: jnp.convolve(x, ramp(3, dtype=x.dtype), mode="same"), "n")
    ),
    "convolve valid": refused(
        NO_INDEX, polymorphic(lambda x: jnp.convolve(x, ramp(3, dtype=x.dtype), mode="valid"), "n")
    ),
    "convolve with a symbolic kernel": refused(
        NO_INDEX, polymorphic(lambda x, y: jnp.convolve(x, y, mode="full"), "n", "k", constraints=("n >= k",))
    ),
    "correlate": refused(NO_INDEX, polymorphic(lambda x: jnp.correlate(x, ramp(3, dtype=x.dtype), mode="full"), "n")),
    "convolve in two dimensions": polymorphic(
        lambda x: jax.scipy.signal.convolve2d(x, ramp(2, 2, dtype=x.dtype), mode="valid"),
        "h, w",
        constraints=("h >= 3", "w >= 3"),
    ),
    # pooling
    "max pooling": polymorphic(pooled(-jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1)), "b, 2*h, 2*w, 1"),
    "max pooling with overlap": polymorphic(pooled(-jnp.inf, lax.max, (1, 3), (1, 2)), "b, n"),
    "max pooling SAME": polymorphic(pooled(-jnp.inf, lax.max, (1, 3), (1, 1), "SAME"), "b, n"),
    "sum pooling": polymorphic(pooled(0.0, lax.add, (1, 3), (1, 3)), "b, n"),
    "average pooling SAME": polymorphic(averaged, "b, 2*d"),
    "sum pooling with a symbolic window": polymorphic(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, x.shape[1]), (1, 1), "VALID"), "b, d"
    ),
    # linear algebra
    "cholesky": polymorphic(lambda x: jnp.linalg.cholesky(positive_definite(x)), "b, 3, 4", conditioning=16),
    "solve": polymorphic(lambda x, y: jnp.linalg.solve(positive_definite(x), y), "b, 3, 4", "b, 3, 2", conditioning=64),
    "triangular_solve": polymorphic(
        lambda x, y: jax.scipy.linalg.solve_triangular(jnp.tril(x) + 3 * jnp.eye(3), y, lower=True),
        "b, 3, 3",
        "b, 3, 2",
        conditioning=16,
    ),
    "cho_solve": polymorphic(
        lambda x, y: jax.scipy.linalg.cho_solve((jnp.linalg.cholesky(positive_definite(x)), True), y),
        "b, 3, 4",
        "b, 3, 2",
        conditioning=64,
    ),
    "inv": polymorphic(lambda x: jnp.linalg.inv(positive_definite(x)), "b, 3, 4", conditioning=64),
    "det and slogdet": polymorphic(
        lambda x: (jnp.linalg.det(positive_definite(x)), jnp.linalg.slogdet(positive_definite(x))),
        "b, 3, 4",
        conditioning=64,
    ),
    "lu": polymorphic(lambda x: jax.scipy.linalg.lu_factor(positive_definite(x)), "b, 3, 4", conditioning=16),
    "qr": polymorphic(lambda x: jnp.linalg.qr(x + jnp.eye(4, 3)), "b, 4, 3", conditioning=64),
    "eigh": polymorphic(
        lambda x: jnp.linalg.eigvalsh(x + jnp.swapaxes(x, 1, 2) + jnp.diag(jnp.arange(3.0) * 5)),
        "b, 3, 3",
        conditioning=64,
    ),
    "eigh with vectors": polymorphic(
        lambda x: jnp.abs(jnp.linalg.eigh(x + jnp.swapaxes(x, 1, 2) + jnp.diag(jnp.arange(3.0) * 5))[1]),
        "b, 3, 3",
        conditioning=64,
    ),
    "svd": polymorphic(lambda x: jnp.linalg.svd(x + jnp.eye(4, 3) * 3, compute_uv=False), "b, 4, 3", conditioning=64),
    "pinv": polymorphic(lambda x: jnp.linalg.pinv(x + jnp.eye(4, 3) * 3), "b, 4, 3", conditioning=256),
    "norms": polymorphic(
        lambda x: (jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1), jnp.linalg.norm(x, ord=1, axis=0)), "b, d"
    ),
    "matrix_power": polymorphic(lambda x: jnp.linalg.matrix_power(x, 3), "b, d, d"),
    "cov and corrcoef": polymorphic(lambda x: (jnp.cov(x), jnp.corrcoef(x)), "3, n", conditioning=64),
    "expm of a batch": polymorphic(lambda x: jax.scipy.linalg.expm(x * 0.1), "b, 2, 2", conditioning=16),
    "attention": polymorphic(attention, "b, n, 4", conditioning=4),
    "causal attention of several heads": polymorphic(causal_attention, "b, n, 4", conditioning=4),
    "dot_product_attention": polymorphic(
        lambda q, k: jax.nn.dot_product_attention(q, k, k),
        "b, n, 2, 4",
        "b, m, 2, 4",
        conditioning=4,
        computes_in="float32",
    ),
}
