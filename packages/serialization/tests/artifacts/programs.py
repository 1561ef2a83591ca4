"""The programs of the corpus: what old JAX releases export, call and freeze.

`PROGRAMS` maps a name to a `Program`; `Program.case()` makes the function, its arguments and
how it is exported, with whatever release of JAX is installed. A release that lacks something
raises, and `generate.py` records why. Runs on Python 3.10 and JAX 0.4.30.

A name, once frozen, keeps its meaning: a program is changed by adding another.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

__all__ = ["PROGRAMS", "Case", "Program"]


@dataclass(frozen=True)
class Case:
    """One function, how it is exported and what it is called with.

    Attributes:
      fun: The function, or the result of `jax.jit`.
      args: Arrays that it is called with; also its specification unless `specs` is given.
      kwargs: Likewise, by name.
      specs: Shapes and dtypes to export for.
      platforms: Lowering platforms; by default JAX's own.
      disabled_checks: Safety checks to skip.
      vjp_order: How many orders of VJP are serialized along.
      calling_convention: The calling convention version to write.
      runs: Whether a CPU can run it.
      shardings: Of the arguments, for functions over several devices.
    """

    fun: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    specs: Sequence[Any] | None = None
    platforms: Sequence[str] | None = None
    disabled_checks: Sequence[Any] = ()
    vjp_order: int = 0
    calling_convention: int | None = None
    runs: bool = True
    shardings: Sequence[Any] | None = None


@dataclass(frozen=True)
class Program:
    """A named case, and the settings of JAX under which it is made.

    Attributes:
      case: Makes it.
      x64: Whether 64-bit dtypes are enabled.
      shardy: Whether the Shardy partitioner is chosen; None leaves the release its own choice.
      inexact: Why results may differ in the last bits between releases; empty if they may not.
    """

    case: Callable[[], Case]
    x64: bool = False
    shardy: bool | None = None
    inexact: str = ""


PROGRAMS: dict[str, Program] = {}

ELEMENTARY = "elementary functions are approximations, which XLA changes from release to release"
ORDER = "XLA chooses the order of sums and products"
LAPACK = "LAPACK's routines add in an order that depends on its build and the processor"


def program(**settings: Any) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Enters a function that makes a case, under its own name."""

    def enter(case: Callable[[], Case]) -> Callable[[], Case]:
        assert case.__name__ not in PROGRAMS, f"two programs named {case.__name__}"
        PROGRAMS[case.__name__] = Program(case, **settings)
        return case

    return enter


def values(shape: Sequence[int], dtype: Any = "float32", seed: int = 0) -> np.ndarray:
    """Numbers between -2 and 2, the same on every machine: quarters of pseudo-random integers."""
    count = int(np.prod(shape, dtype=np.int64))
    state, numbers = 12345 + 7919 * seed, []
    for _ in range(count * 2):
        state = (1103515245 * state + 12345) % 2**31
        numbers.append((state >> 16) % 17 / 4 - 2)
    parts = np.array(numbers, dtype=np.float64).reshape(2, *shape)
    dtype = np.dtype(dtype)
    return (parts[0] + 1j * parts[1]).astype(dtype) if dtype.kind == "c" else parts[0].astype(dtype)


def matrices(shape: Sequence[int], seed: int = 0) -> dict[str, np.ndarray]:
    """Well-conditioned matrices of LAPACK's four dtypes; no two singular values are close."""
    found = {}
    for name, dtype in (("f32", "float32"), ("f64", "float64"), ("c64", "complex64"), ("c128", "complex128")):
        diagonal = np.zeros(shape)
        for index in range(min(shape[-2:])):
            diagonal[..., index, index] = 4.0 * (index + 1)
        found[name] = (values(shape, dtype, seed) * 0.5 + diagonal).astype(dtype)
    return found


def symmetric(shape: Sequence[int], seed: int = 0) -> dict[str, np.ndarray]:
    """Positive definite matrices of the four dtypes."""
    return {
        name: ((m + np.conj(np.swapaxes(m, -1, -2))) / 2 + 2 * np.eye(shape[-1])).astype(m.dtype)
        for name, m in matrices(shape, seed).items()
    }


def each(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Applies `fun` to each value of a dictionary."""
    return lambda arrays: {name: fun(array) for name, array in sorted(arrays.items())}


def symbolic(arrays: Mapping[str, Any], shape: str) -> dict[str, Any]:
    """The specifications of a dictionary of arrays, at one symbolic shape."""
    sizes = export.symbolic_shape(shape, constraints=("m >= n",) if "m" in shape else ())
    return {name: jax.ShapeDtypeStruct(sizes, array.dtype) for name, array in arrays.items()}


def spec(shape: Sequence[Any], dtype: Any = "float32") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype))


# --- elementwise and dtypes ---


@program()
def elementwise() -> Case:
    def fun(x, y, n):
        return {
            "sum": x + y * 3,
            "floor": jnp.floor(x) - jnp.ceil(y),
            "less": x < y,
            "where": jnp.where(x < y, x, -y),
            "clip": jnp.clip(x, -1, 1),
            "bits": (n << 2) ^ (n >> 1),
            "divided": n // 3,
            "rest": n % 3,
            "sign": jnp.sign(x),
        }

    return Case(fun, (values((3, 4)), values((3, 4), seed=1), np.arange(-6, 6, dtype=np.int32).reshape(3, 4)))


@program(inexact=ELEMENTARY)
def elementary() -> Case:
    def fun(x):
        y = jnp.abs(x) + 0.5
        return [f(x) for f in (jnp.sin, jnp.cos, jnp.tan, jnp.exp, jnp.tanh, jnp.expm1, jnp.arctan, jnp.sinh)] + [
            f(y) for f in (jnp.log, jnp.log1p, jnp.sqrt, lax.rsqrt, jnp.cbrt, lambda v: v**1.5)
        ]

    return Case(fun, (values((17,)),))


@program(inexact=ELEMENTARY)
def chlo() -> Case:
    def fun(x):
        y = jnp.abs(x) + 1.25
        first = [lax.erf(x), lax.erfc(x), lax.erf_inv(x / 4), lax.asinh(x), lax.acosh(y), lax.atanh(x / 4)]
        return [*first, lax.lgamma(y), lax.digamma(y), lax.bessel_i1e(x), lax.igamma(y, y), jnp.sinh(x), lax.tan(x)]

    return Case(fun, (values((9,)),))


@program(x64=True)
def dtypes() -> Case:
    names = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128"
    )
    args = {name: jnp.asarray(values((5,)) + 2).astype(name) for name in names.split()}
    return Case(each(lambda x: (x + x, x[::-1])), (args,))


def small_floats(names: str) -> Case:
    args = {name: jnp.asarray(values((6,))).astype(getattr(jnp, name)) for name in names.split()}
    return Case(each(lambda x: (x.astype(jnp.float32) * 2, x[::-1])), (args,))


@program()
def float8() -> Case:
    return small_floats("float8_e4m3fn float8_e5m2")


@program()
def float8_fnuz() -> Case:
    return small_floats("float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2fnuz")


@program()
def float8_newer() -> Case:
    return small_floats("float8_e3m4 float8_e4m3 float8_e8m0fnu")


@program()
def float4() -> Case:
    return small_floats("float4_e2m1fn")


@program()
def int4() -> Case:
    args = {name: jnp.asarray([0, 1, 2, 3, 4, 7]).astype(getattr(jnp, name)) for name in ("int4", "uint4")}
    return Case(each(lambda x: (x.astype(jnp.int32) * 2, x[::-1])), (args,))


@program()
def int2() -> Case:
    args = {name: jnp.asarray([0, 1, 1, 0]).astype(getattr(jnp, name)) for name in ("int2", "uint2")}
    return Case(each(lambda x: (x.astype(jnp.int32) * 2, x[::-1])), (args,))


@program()
def scalars_and_empty() -> Case:
    def fun(x, n, empty):
        return x * n, empty + 1, jnp.concatenate([empty, empty]).sum(), jnp.zeros((0, 3)) * x

    return Case(fun, (np.float32(1.5), np.int32(3), np.zeros((0, 4), np.float32)))


@program()
def constants() -> Case:
    table = values((32, 8), seed=3)
    return Case(lambda i: jnp.asarray(table)[i], (np.array([3, 0, 31], np.int32),))


# --- structure of arguments and results ---


@program()
def structures() -> Case:
    def fun(first, *, options, scale):
        (x, [y]), nothing = first
        assert nothing is None
        return {"sum": x + y, "nested": [(options["a"]["z"] * scale,), None, {}], "b": options["b"]}

    args = (((values((2,)), [values((2,), seed=1)]), None),)
    kwargs = {"options": {"b": values((3,)), "a": {"z": values((1,), seed=2)}}, "scale": np.float32(2)}
    return Case(fun, args, kwargs)


@program()
def integer_keys() -> Case:
    return Case(lambda d: {7: d[2] + d[10], 1: d[10]}, ({10: values((2,)), 2: values((2,), seed=1)},))


@program()
def many_arguments() -> Case:
    def fun(*arrays):
        return sum(a * (i % 5) for i, a in enumerate(arrays)), arrays[7]

    return Case(fun, tuple(values((2,), seed=i % 9) for i in range(300)))


@program()
def unused_arguments() -> Case:
    return Case(lambda a, b, c, d: (c * 2, a), tuple(values((n + 1,)) for n in range(4)))


@program()
def donated() -> Case:
    fun = jax.jit(lambda x, y: (x + y, y * 2), donate_argnums=(0,))
    return Case(fun, (values((4,)), values((4,), seed=1)))


@program()
def keep_unused() -> Case:
    return Case(jax.jit(lambda x, y: y + 1, keep_unused=True), (values((4,)), values((4,), seed=1)))


Point = collections.namedtuple("Point", ["x", "y"])


@functools.cache
def register_point() -> None:
    export.register_namedtuple_serialization(Point, serialized_name="corpus.Point")


@program()
def named_tuple() -> Case:
    register_point()
    return Case(lambda p: Point(p.y, {"sum": p.x + p.y}), (Point(values((2,)), values((2,), seed=1)),))


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass
class Ball:
    """A pytree node with auxiliary data."""

    centre: Any
    radius: Any
    name: str = "ball"

    def tree_flatten(self):
        return (self.centre, self.radius), self.name

    @classmethod
    def tree_unflatten(cls, name, children):
        return cls(*children, name=name)


@functools.cache
def register_ball() -> None:
    export.register_pytree_node_serialization(
        Ball,
        serialized_name="corpus.Ball",
        serialize_auxdata=lambda name: name.encode(),
        deserialize_auxdata=lambda data: bytes(data).decode(),
    )


@program()
def pytree_node() -> Case:
    register_ball()
    ball = Ball(values((3,)), np.float32(2), "unit")
    return Case(lambda b, scale: [Ball(b.centre * scale, b.radius * scale, b.name + "!")], (ball, np.float32(2)))


@functools.cache
def register_linalg_results() -> None:
    from jax._src.numpy import linalg
    from jax._src.numpy.linalg import EighResult, QRResult, SVDResult

    types = [EighResult, QRResult, SVDResult, *(t for t in [getattr(linalg, "SlogdetResult", None)] if t)]
    for type_ in types:
        export.register_namedtuple_serialization(type_, serialized_name=f"jax.numpy.linalg.{type_.__name__}")


@program(inexact=LAPACK)
def linalg_results() -> Case:
    register_linalg_results()

    def fun(a):
        return jnp.linalg.eigh(a), jnp.linalg.qr(a), jnp.linalg.svd(a), jnp.linalg.slogdet(a)

    return Case(fun, (symmetric((3, 3))["f32"],))


# --- symbolic shapes ---


@program()
def symbolic_batch() -> Case:
    b, d = export.symbolic_shape("b, d")
    return Case(
        lambda x: (x * 2 + 1, x.reshape((-1,)), jnp.arange(x.shape[0])),
        (values((3, 8)),),
        specs=(spec((b, 2 * d)),),
    )


@program()
def symbolic_constraints() -> Case:
    a, b = export.symbolic_shape("a, b", constraints=("a >= 4", "b <= a", "b >= 2"))
    return Case(
        lambda x, y: (x[:4], x[: y.shape[0]] + y, x.shape[0] - y.shape[0]),
        (values((6,)), values((4,), seed=1)),
        specs=(spec((a,)), spec((b,))),
    )


@program()
def symbolic_equality() -> Case:
    a, b = export.symbolic_shape("a, b", constraints=("a == 2*b",))
    return Case(
        lambda x, y: x + jnp.concatenate([y, y]),
        (values((6,)), values((3,), seed=1)),
        specs=(spec((a,)), spec((b,))),
    )


@program()
def symbolic_floordiv() -> Case:
    (n,) = export.symbolic_shape("n")
    return Case(
        lambda x: (x[: n // 3], x[: n % 4], jnp.zeros((n // 2 + n % 2,)) + n),
        (values((11,)),),
        specs=(spec((n,)),),
    )


@program()
def symbolic_min_max() -> Case:
    a, b = export.symbolic_shape("a, b")
    return Case(
        lambda x, y: (x[: lax_min(a, b)] + y[: lax_min(a, b)], jnp.zeros((lax_max(a, b),))),
        (values((5,)), values((3,), seed=1)),
        specs=(spec((a,)), spec((b,))),
    )


def lax_min(a, b):
    from jax._src import core

    return core.min_dim(a, b)


def lax_max(a, b):
    from jax._src import core

    return core.max_dim(a, b)


@program()
def symbolic_unused() -> Case:
    a, b = export.symbolic_shape("a, b")
    return Case(
        lambda x, y: x + b,
        (values((5,)), values((3, 5), seed=1)),
        specs=(spec((a,)), spec((b, a))),
    )


@program(inexact=ORDER)
def symbolic_attention() -> Case:
    b, t = export.symbolic_shape("b, t")

    def fun(q, k, v):
        scores = jnp.einsum("btd,bsd->bts", q, k) / 2
        mask = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
        return jnp.einsum("bts,bsd->btd", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)

    args = tuple(values((2, 5, 4), seed=s) for s in range(3))
    return Case(fun, args, specs=(spec((b, t, 4)),) * 3)


@program(inexact=ORDER)
def symbolic_windows() -> Case:
    b, n = export.symbolic_shape("b, n")

    def fun(x):
        pooled = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3), (1, 2), "VALID")
        return pooled, jnp.cumsum(x, axis=1), lax.cummax(x, axis=1), x[::-1], jnp.pad(x, ((0, 0), (1, 2)))

    return Case(fun, (values((3, 8)),), specs=(spec((b, n)),))


@program()
def symbolic_random() -> Case:
    (n,) = export.symbolic_shape("n")

    def fun(key, x):
        return jax.random.bits(key, x.shape), jax.random.uniform(key, x.shape)

    return Case(fun, (np.array([0, 42], np.uint32), values((5,))), specs=(spec((2,), "uint32"), spec((n,))))


@program(x64=True)
def symbolic_random_rbg() -> Case:
    (n,) = export.symbolic_shape("n")

    def fun(key, x):
        return lax.rng_bit_generator(key, x.shape, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)

    return Case(fun, (np.array([1, 42], np.uint64), values((6,))), specs=(spec((2,), "uint64"), spec((n,))))


@program(x64=True)
def symbolic_x64() -> Case:
    a, b = export.symbolic_shape("a, b")
    return Case(
        lambda x: (x.sum(axis=0), jnp.array(a * b), x.T),
        (np.arange(6, dtype=np.int64).reshape(2, 3),),
        specs=(spec((a, b), "int64"),),
    )


@program()
def symbolic_gather() -> Case:
    b, n = export.symbolic_shape("b, n")

    def fun(x, i):
        taken = jnp.take_along_axis(x, i[:, None] % n, axis=1)
        return taken, x.at[:, 0].set(7), lax.dynamic_slice_in_dim(x, 1, 1, axis=0)

    args = (values((3, 4)), np.array([0, 5, 2], np.int32))
    return Case(fun, args, specs=(spec((b, n)), spec((b,), "int32")))


# --- platforms, checks and conventions ---


@program()
def multi_platform() -> Case:
    def fun(x):
        return lax.platform_dependent(x, cpu=lambda v: v + 1, tpu=lambda v: v + 2, default=lambda v: v + 3)

    return Case(fun, (values((3,)),), platforms=("cpu", "cuda", "tpu"))


@program()
def multi_platform_last() -> Case:
    def fun(x):
        return lax.platform_dependent(x, cpu=lambda v: v + 1, tpu=lambda v: v + 2, default=lambda v: v + 3)

    return Case(fun, (values((3,)),), platforms=("tpu", "cuda", "cpu"))


@program()
def multi_platform_symbolic() -> Case:
    b, n = export.symbolic_shape("b, n")

    def fun(x):
        return lax.platform_dependent(x, cpu=lambda v: v + b, default=lambda v: v - n)

    return Case(fun, (values((3, 2)),), specs=(spec((b, n)),), platforms=("cuda", "cpu"))


@program()
def cuda_only() -> Case:
    return Case(lambda x: x * 2, (values((3,)),), platforms=("cuda",), runs=False)


@program()
def cuda_random() -> Case:
    return Case(lambda k: jax.random.bits(k, (4,)), (np.array([0, 1], np.uint32),), platforms=("cuda",), runs=False)


@program()
def cuda_linalg() -> Case:
    def fun(a):
        return jnp.linalg.qr(a)[0], jnp.linalg.eigh(a)[0], jnp.linalg.cholesky(a)

    return Case(fun, (symmetric((3, 3))["f32"],), platforms=("cuda",), runs=False)


@program()
def tpu_linalg() -> Case:
    def fun(a):
        return jnp.linalg.qr(a)[0], jnp.linalg.eigh(a)[0], lax.linalg.lu(a)[0]

    return Case(fun, (symmetric((3, 3))["f32"],), platforms=("tpu",), runs=False)


@program()
def tpu_top_k() -> Case:
    return Case(lambda x: lax.approx_max_k(x, 3), (values((64,)),), platforms=("tpu",), runs=False)


@program()
def disabled_platform() -> Case:
    checks = (export.DisabledSafetyCheck.platform(),)
    return Case(lambda x: x * 2, (values((3,)),), platforms=("tpu",), disabled_checks=checks)


@program()
def disabled_shape_assertions() -> Case:
    make = getattr(export.DisabledSafetyCheck, "shape_assertions", None)
    if make is None:
        raise NotImplementedError("no DisabledSafetyCheck.shape_assertions in this release")
    (n,) = export.symbolic_shape("n")
    return Case(lambda x: x + n, (values((3, 6)),), specs=(spec((n, 2 * n)),), disabled_checks=(make(),))


@program()
def disabled_custom_call() -> Case:
    checks = (
        export.DisabledSafetyCheck.custom_call("corpus_target"),
        export.DisabledSafetyCheck.custom_call("other"),
    )
    ffi = ffi_call("corpus_target", spec((3,)))
    return Case(lambda x: ffi(x) * 2, (values((3,)),), disabled_checks=checks, runs=False)


def ffi_call(target: str, result: Any, *, has_side_effect: bool = False) -> Callable[..., Any]:
    """`jax.ffi.ffi_call`, under the name that a release gives it."""
    try:
        from jax.ffi import ffi_call as call
    except ImportError:
        from jax.extend.ffi import ffi_call as call
    try:
        made = call(target, result, has_side_effect=has_side_effect)
    except TypeError:  # before 0.4.36 the arguments were given at once
        return lambda *args: call(target, result, *args, has_side_effect=has_side_effect)
    return made if callable(made) else (lambda *args: call(target, result, *args, has_side_effect=has_side_effect))


@program()
def calling_convention_9() -> Case:
    (n,) = export.symbolic_shape("n")
    return Case(lambda x: x + n, (values((3,)),), specs=(spec((n,)),), calling_convention=9)


@program()
def calling_convention_10() -> Case:
    (n,) = export.symbolic_shape("n")
    return Case(lambda x: x + n, (values((3,)),), specs=(spec((n,)),), calling_convention=10)


@program()
def nested_export() -> Case:
    (n,) = export.symbolic_shape("n")
    inner = export.export(jax.jit(lambda x: x * 2 + x.shape[0]))(spec((n,)))
    return Case(lambda x: inner.call(x) + inner.call(x[:2]).sum(), (values((3,)),))


@program()
def host_memory() -> Case:
    fun = jax.jit(lambda x: x * 2)
    if hasattr(jax, "memory"):
        return Case(lambda x: jax.device_put(x * 2, jax.memory.Space.Host), (values((3,)),))
    from jax._src.sharding_impls import TransferToMemoryKind

    return Case(lambda x: jax.device_put(fun(x), TransferToMemoryKind("pinned_host")), (values((3,)),))


# --- derivatives ---


@program(inexact=ORDER)
def vjp_1() -> Case:
    return Case(lambda x, y: (x * y).sum() + x[0] ** 3, (values((3,)), values((3,), seed=1)), vjp_order=1)


@program(inexact=ORDER)
def vjp_2() -> Case:
    return Case(lambda x: {"cube": x**3, "product": x[0] * x}, (values((3,)),), vjp_order=2)


@program(inexact=ORDER)
def vjp_symbolic() -> Case:
    b, n = export.symbolic_shape("b, n")
    return Case(lambda x, w: jnp.tanh(x @ w), (values((2, 3)), values((3, 3), seed=1)),
                specs=(spec((b, n)), spec((n, n))), vjp_order=2)  # fmt: skip


@program(inexact=ORDER)
def vjp_integers() -> Case:
    def fun(x, n, unused):
        return x * n, n + 1, jnp.float32(2)

    return Case(fun, (values((3,)), np.arange(3, dtype=np.int32), values((2,))), vjp_order=1)


@program(inexact=ORDER)
def vjp_multi_platform() -> Case:
    return Case(lambda x: x**2, (values((3,)),), platforms=("cpu", "cuda", "tpu"), vjp_order=1)


@program(inexact=ORDER)
def custom_vjp_and_remat() -> Case:
    @jax.custom_vjp
    def twice(x):
        return x * 2

    twice.defvjp(lambda x: (x * 2, x), lambda x, g: (g * x,))
    return Case(lambda x: jax.checkpoint(lambda v: jnp.square(twice(v)))(x).sum(), (values((3,)),), vjp_order=1)


# --- random numbers ---


@program()
def random_bits() -> Case:
    def fun(key):
        a, b = jax.random.split(key)
        return jax.random.bits(a, (5,)), jax.random.randint(b, (4,), 0, 10), jax.random.permutation(a, 6)

    return Case(fun, (np.array([0, 42], np.uint32),))


@program(inexact=ELEMENTARY)
def random_normal() -> Case:
    def fun(key):
        return jax.random.normal(key, (5,)), jax.random.gamma(key, 2.0, (3,)), jax.random.uniform(key, (4,))

    return Case(fun, (np.array([0, 42], np.uint32),))


def typed_key(implementation: str) -> Case:
    def fun(key):
        return jax.random.bits(key, (5,)), jax.random.split(key, 2)

    return Case(fun, (jax.random.key(42, impl=implementation),))


@program()
def random_key_threefry() -> Case:
    return typed_key("threefry2x32")


@program()
def random_key_rbg() -> Case:
    return typed_key("rbg")


@program()
def random_key_unsafe_rbg() -> Case:
    return typed_key("unsafe_rbg")


@program()
def random_key_inside() -> Case:
    return Case(lambda seed: jax.random.bits(jax.random.fold_in(jax.random.key(seed), 3), (4,)), (np.int32(7),))


# --- sorting, transforms, control ---


@program()
def top_k() -> Case:
    return Case(lambda x, n: (lax.top_k(x, 3), lax.top_k(n, 2)), (values((2, 8)), np.arange(6, dtype=np.int32) % 4))


@program()
def top_k_symbolic() -> Case:
    b, k = export.symbolic_shape("b, k", constraints=("k <= 8",))
    return Case(
        lambda x, y: (lax.top_k(x, 3), lax.top_k(x, y.shape[0])),
        (values((2, 8)), values((2,))),
        specs=(spec((b, 8)), spec((k,))),
    )  # the size is symbolic


@program()
def approx_top_k() -> Case:
    return Case(lambda x: lax.approx_max_k(x, 3), (values((64,)) + np.arange(64, dtype=np.float32) / 64,))


@program()
def approx_top_k_symbolic() -> Case:
    b, k = export.symbolic_shape("b, k", constraints=("k <= 64",))
    return Case(
        lambda x, y: lax.approx_max_k(x, y.shape[0]),
        (values((2, 64)) + np.arange(64, dtype=np.float32) / 64, values((3,))),
        specs=(spec((b, 64)), spec((k,))),
    )


@program()
def sort() -> Case:
    def fun(x, n):
        return jnp.sort(x), jnp.argsort(x, stable=True), lax.sort((n, x), num_keys=1), jnp.sort(x, descending=True)

    return Case(fun, (values((8,)), np.arange(8, dtype=np.int32) % 3))


@program()
def sort_symbolic() -> Case:
    b, n = export.symbolic_shape("b, n")
    return Case(
        lambda x: (jnp.sort(x, axis=1), jnp.argsort(x, axis=0), jnp.unique(x[0], size=3)),
        (values((3, 5)),),
        specs=(spec((b, n)),),
    )


@program(inexact=ORDER)
def fft() -> Case:
    def fun(x, z):
        return jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.fft(z), jnp.fft.ifft2(z)

    return Case(fun, (values((3, 8)), values((3, 8), "complex64")))


@program(inexact=ORDER)
def fft_symbolic() -> Case:
    (b,) = export.symbolic_shape("b")
    return Case(lambda x: jnp.fft.fft(x, axis=-1), (values((3, 8), "complex64"),), specs=(spec((b, 8), "complex64"),))


@program()
def control_flow() -> Case:
    def fun(x, n):
        total, steps = lax.scan(lambda c, v: (c + v, c * 2), jnp.float32(0), x)
        count, halved = lax.while_loop(lambda s: s[1] > 0.25, lambda s: (s[0] + 1, s[1] / 2), (0, jnp.float32(8)))
        chosen = lax.cond(n > 2, lambda v: v + 1, lambda v: v - 1, x)
        switched = lax.switch(n, [lambda v: v, lambda v: -v, lambda v: v * 4, lambda v: v * 8], x)
        return total, steps, count, halved, chosen, switched, lax.fori_loop(0, n, lambda i, v: v + i, 0)

    return Case(fun, (values((5,)), np.int32(3)))


@program()
def control_flow_symbolic() -> Case:
    (n,) = export.symbolic_shape("n")

    def fun(x):
        total, _ = lax.scan(lambda c, v: (c + v, None), jnp.float32(0), x)
        return total, lax.fori_loop(0, x.shape[0], lambda i, v: v.at[i].add(i), x), jax.lax.map(lambda v: v * 2, x)

    return Case(fun, (values((5,)),), specs=(spec((n,)),))


@program(inexact=ORDER)
def network() -> Case:
    def fun(params, image):
        x = lax.conv_general_dilated(
            image, params["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.gelu(x).mean((1, 2))
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return jax.nn.log_softmax(x @ params["w"] + params["b"])

    params = {"kernel": values((3, 3, 2, 4)), "w": values((4, 3), seed=1), "b": values((3,), seed=2)}
    return Case(fun, (params, values((2, 5, 5, 2), seed=3)))


# --- linear algebra ---


# Written by old releases though they did not declare them stable, if their caller vouched for them.
VOUCHED = [f"lapack_{e}{r}" for r in ("gehrd", "sytrd", "hetrd") for e in "sdcz"]


def linalg(fun: Callable[..., Any], args: Mapping[str, Any], symbolic_shape: str | None = None) -> Case:
    specs = None if symbolic_shape is None else (symbolic(args, symbolic_shape),)
    vouched = VOUCHED if fun in (hessenberg_of, tridiagonal_of) else ()
    checks = tuple(map(export.DisabledSafetyCheck.custom_call, vouched))
    return Case(each(fun), (dict(args),), specs=specs, disabled_checks=checks)


def over(**pairs: tuple[Callable[..., Any], Mapping[str, Any], str | None]) -> None:
    """Enters one program for each name."""
    for name, (fun, args, shape) in pairs.items():
        PROGRAMS[name] = Program(functools.partial(linalg, fun, args, shape), x64=True, inexact=LAPACK)


def eigh(a, **options):
    return tuple(lax.linalg.eigh(a, **options))


def lower_and_upper(a):
    return lax.linalg.cholesky(a), tuple(lax.linalg.eigh(a, lower=False))


def qr_both(a):
    return tuple(lax.linalg.qr(a, full_matrices=False)), tuple(lax.linalg.qr(a, full_matrices=True))


def svd_all(a):
    full = tuple(lax.linalg.svd(a, full_matrices=True))
    thin = tuple(lax.linalg.svd(a, full_matrices=False))
    return full, thin, lax.linalg.svd(a, compute_uv=False)


def eig_all(a):
    both = tuple(lax.linalg.eig(a))
    alone = tuple(lax.linalg.eig(a, compute_left_eigenvectors=False, compute_right_eigenvectors=False))
    return both, alone


def triangular(a):
    b = jnp.ones_like(a) * jnp.arange(1, a.shape[-1] + 1).astype(a.dtype)
    solve = functools.partial(lax.linalg.triangular_solve, a, b)
    return [
        solve(left_side=left, lower=lower, transpose_a=transpose, conjugate_a=conjugate, unit_diagonal=unit)
        for left, lower, transpose, conjugate, unit in (
            (True, True, False, False, False),
            (True, False, True, False, False),
            (False, True, True, True, False),
            (False, False, False, False, True),
        )
    ]


def triangular_one(a):
    b = jnp.ones_like(a)
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=True)


def schur_both(a):
    return tuple(lax.linalg.schur(a)), tuple(lax.linalg.schur(a, compute_schur_vectors=False))[:1]


def hessenberg_of(a):
    return tuple(lax.linalg.hessenberg(a))


def tridiagonal_of(a):
    return tuple(lax.linalg.tridiagonal(a, lower=True)), tuple(lax.linalg.tridiagonal(a, lower=False))


def householder(a):
    return lax.linalg.householder_product(a, jnp.ones(a.shape[:-2] + a.shape[-1:], a.dtype) / 4)


def inverse_determinant_solution(a):
    return jnp.linalg.inv(a), jnp.linalg.det(a), jnp.linalg.solve(a, a[..., :1])


SQUARE, WIDE, TALL, BATCH = (4, 4), (2, 3, 5), (2, 5, 3), (2, 4, 4)

over(
    cholesky=(lax.linalg.cholesky, symmetric(SQUARE), None),
    cholesky_batch=(lax.linalg.cholesky, symmetric((2, 3, 4, 4)), None),
    cholesky_symbolic=(lax.linalg.cholesky, symmetric(BATCH), "b, n, n"),
    cholesky_eigh_upper=(lower_and_upper, symmetric(SQUARE), None),
    eigh=(eigh, symmetric(SQUARE), None),
    eigh_batch=(eigh, symmetric(BATCH), None),
    eigh_symbolic=(eigh, symmetric(BATCH), "b, 4, 4"),
    eigh_symbolic_size=(eigh, symmetric(BATCH), "b, n, n"),
    eig=(eig_all, matrices(SQUARE), None),
    eig_batch=(eig_all, matrices(BATCH), None),
    eig_symbolic=(eig_all, matrices(BATCH), "b, n, n"),
    qr=(qr_both, matrices((5, 3)), None),
    qr_batch=(qr_both, matrices(WIDE), None),
    qr_symbolic=(qr_both, matrices(TALL), "b, 5, 3"),
    qr_symbolic_size=(qr_both, matrices(TALL), "b, m, n"),
    svd=(svd_all, matrices((5, 3)), None),
    svd_batch=(svd_all, matrices(WIDE), None),
    svd_symbolic=(svd_all, matrices(TALL), "b, 5, 3"),
    svd_symbolic_size=(svd_all, matrices(TALL), "b, m, n"),
    lu=(lambda a: tuple(lax.linalg.lu(a)), matrices((5, 3)), None),
    lu_batch=(lambda a: tuple(lax.linalg.lu(a)), matrices(WIDE), None),
    lu_symbolic=(lambda a: tuple(lax.linalg.lu(a)), matrices(TALL), "b, m, n"),
    triangular_solve=(triangular, matrices(SQUARE), None),
    triangular_solve_batch=(triangular, matrices(BATCH), None),
    triangular_solve_symbolic=(triangular_one, matrices(BATCH), "b, n, n"),
    schur=(schur_both, matrices(SQUARE), None),
    schur_batch=(schur_both, matrices(BATCH), None),
    schur_symbolic=(schur_both, matrices(BATCH), "b, n, n"),
    hessenberg=(hessenberg_of, matrices(SQUARE), None),
    hessenberg_batch=(hessenberg_of, matrices(BATCH), None),
    tridiagonal=(tridiagonal_of, symmetric(SQUARE), None),
    tridiagonal_batch=(tridiagonal_of, symmetric(BATCH), None),
    householder_product=(householder, matrices((5, 3)), None),
    solve_inv_det=(inverse_determinant_solution, matrices(BATCH), None),
)  # fmt: skip


@program(inexact=LAPACK)
def tridiagonal_solve() -> Case:
    def fun(lower, diagonal, upper, b):
        return lax.linalg.tridiagonal_solve(lower, diagonal, upper, b)

    lower, diagonal, upper = values((4,)), np.full((4,), 8, np.float32), values((4,), seed=1)
    lower[0] = upper[-1] = 0
    return Case(fun, (lower, diagonal, upper, values((4, 2), seed=2)))


# --- several devices ---


def mesh(count: int, axes: Mapping[str, int], order: Sequence[int] | None = None) -> Any:
    devices = np.array(jax.devices()[:count])[list(order) if order else slice(None)]
    return jax.sharding.Mesh(devices.reshape(tuple(axes.values())), tuple(axes))


def sharded(fun: Callable[..., Any], where: Any, args: Sequence[Any], *parts: Any, out: Any = None) -> Case:
    shardings = tuple(jax.sharding.NamedSharding(where, jax.sharding.PartitionSpec(*part)) for part in parts)
    jitted = jax.jit(fun, in_shardings=shardings, **({} if out is None else {"out_shardings": out}))
    return Case(jitted, args, shardings=shardings)


def named(where: Any, *parts: Any) -> Any:
    return jax.sharding.NamedSharding(where, jax.sharding.PartitionSpec(*parts))


@program()
def sharded_2() -> Case:
    return sharded(lambda x, y: x * 2 + y, mesh(2, {"a": 2}), (values((4, 2)), values((2,))), ("a",), ())


def four() -> Case:
    where = mesh(4, {"a": 2, "b": 2})

    def fun(x, y):
        z = lax.with_sharding_constraint(x + 1, named(where, None, ("b", "a")))
        return z * 2, (x + y).sum(0)

    out = (named(where, "b", "a"), named(where))
    return sharded(fun, where, (values((4, 8)), values((8,), seed=1)), ("a", "b"), ("b",), out=out)


@program()
def sharded_4() -> Case:
    return four()


@program(shardy=True)
def sharded_4_shardy() -> Case:
    return four()


@program(shardy=False)
def sharded_4_gspmd() -> Case:
    return four()


@program(shardy=False)
def sharded_partly() -> Case:
    return sharded(lambda x: x * 2, mesh(4, {"a": 2, "b": 2}), (values((4, 4)),), ("b",))


@program(shardy=False)
def sharded_transposed() -> Case:
    where = mesh(4, {"a": 2, "b": 2})
    return sharded(lambda x: x * 2, where, (values((4, 4)),), ("b", "a"), out=named(where, None, "b"))


@program()
def sharded_reordered() -> Case:
    return sharded(lambda x: x * 2, mesh(4, {"a": 2, "b": 2}, (3, 1, 0, 2)), (values((4, 4)),), ("a", "b"))


@program()
def sharded_symbolic() -> Case:
    (n,) = export.symbolic_shape("n")
    case = sharded(lambda x: x * 2 + n, mesh(2, {"a": 2}), (values((4, 2)),), ("a",))
    return dataclasses.replace(case, specs=(spec((2 * n, 2)),))


@program()
def sharded_vjp() -> Case:
    case = sharded(lambda x, y: x * y, mesh(2, {"a": 2}), (values((4,)), values((4,), seed=1)), ("a",), ())
    return dataclasses.replace(case, vjp_order=1)


@program()
def shard_map() -> Case:
    try:
        from jax import shard_map as mapped
    except ImportError:
        from jax.experimental.shard_map import shard_map as mapped
    where = mesh(4, {"a": 4})
    P = jax.sharding.PartitionSpec

    def local(x, y):
        return lax.psum(x.sum(0), "a") + y, lax.ppermute(x, "a", [(i, (i + 1) % 4) for i in range(4)])

    fun = mapped(local, mesh=where, in_specs=(P("a"), P()), out_specs=(P(), P("a")))
    return sharded(fun, where, (values((8, 2)), values((2,), seed=1)), ("a",), ())


@program()
def single_device_sharding() -> Case:
    return sharded(lambda x: x * 2, mesh(1, {"a": 1}), (values((4,)),), ("a",))


# --- effects ---


def effect_types() -> tuple[type, type]:
    """An ordered and an unordered effect, equal to any other of their class, as serialization needs."""
    from jax._src import effects

    class ByClass(effects.Effect):
        def __eq__(self, other):
            return type(self) is type(other)

        def __hash__(self):
            return hash(type(self))

    ordered = type("OrderedEffect", (ByClass,), {"__module__": "corpus"})
    unordered = type("UnorderedEffect", (ByClass,), {"__module__": "corpus"})
    for type_ in (ordered, unordered):
        type_.__qualname__ = type_.__name__
        for allowed in ("lowerable_effects", "control_flow_allowed_effects", "custom_derivatives_allowed_effects"):
            getattr(effects, allowed).add_type(type_)
    effects.ordered_effects.add_type(ordered)
    return ordered, unordered


effect_types = functools.cache(effect_types)


def with_effects(*effects: Any) -> Callable[[Any], Any]:
    """A primitive that returns its argument and has these effects."""
    try:
        from jax.extend.core import Primitive
    except ImportError:
        from jax.core import Primitive
    from jax.interpreters import mlir

    primitive = Primitive("corpus_effect")
    primitive.def_effectful_abstract_eval(lambda aval: (aval, set(effects)))

    def lowering(ctx, value):
        ordered = [e for e in effects if type(e).__name__ == "OrderedEffect"]
        if ordered:
            ctx.set_tokens_out(mlir.TokenSet({e: ctx.tokens_in.get(e) for e in ordered}))
        return [value]

    mlir.register_lowering(primitive, lowering)
    return primitive.bind


@program()
def effect_ordered() -> Case:
    bind = with_effects(effect_types()[0]())
    return Case(lambda x: bind(x + 1) * 2, (values((3,)),))


@program()
def effect_unordered() -> Case:
    bind = with_effects(effect_types()[1]())
    return Case(lambda x: bind(x + 1) * 2, (values((3,)),))


@program()
def effect_both_symbolic() -> Case:
    (n,) = export.symbolic_shape("n")
    first, second = effect_types()
    bind = with_effects(first(), second())
    return Case(lambda x: bind(x + n) * 2, (values((3,)),), specs=(spec((n,)),), platforms=("cuda", "cpu"))


@program()
def effect_ffi() -> Case:
    checks = (export.DisabledSafetyCheck.custom_call("corpus_target"),)
    call = ffi_call("corpus_target", spec((3,)), has_side_effect=True)
    return Case(lambda x: call(x) * 2, (values((3,)),), disabled_checks=checks, runs=False)


@program()
def effect_no_dce() -> Case:
    from jax._src.lax import lax as private

    bind = with_effects(private.no_dce_effect)
    return Case(lambda x: bind(x + 1) * 2, (values((3,)),))


@program()
def effect_collective() -> Case:
    from jax._src.lax import parallel

    bind = with_effects(parallel.SingleSideCollectiveEffect())
    return Case(lambda x: bind(x + 1) * 2, (values((3,)),))


@program()
def effect_debug() -> Case:
    def fun(x):
        jax.debug.print("x = {}", x)
        return x

    return Case(fun, (values((3,)),))
