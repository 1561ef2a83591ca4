"""The functions of CHLO, by Python's `math` and SciPy."""

import cmath
import math

import numpy as np
from scipy import special

from .arithmetic import elementwise
from .case import bf16, c64, case, f32, i1, i8, i32, u8, u32

INF, NAN = math.inf, math.nan

INVERSES = [
    elementwise("chlo.acos", math.acos, f32(-1, -0.5, 0, 0.5, 1)),
    elementwise("chlo.acosh", math.acosh, f32(1, 1.5, 20)),
    elementwise("chlo.asin", math.asin, f32(-1, -0.5, 0, 0.5, 1)),
    elementwise("chlo.asinh", math.asinh, f32(-30, -0.5, 0, 1e-6, 30)),
    elementwise("chlo.atan", math.atan, f32(-INF, -0.5, 0, 1e-6, INF)),
    elementwise("chlo.atanh", math.atanh, f32(-0.5, 0, 1e-6, 0.75)),
    *(
        elementwise(f"chlo.{name}", getattr(cmath, name), c64(0.5 + 1j, -2 + 0.25j, 1.5 - 3j), rtol=1e-5)
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "tan", "sinh", "cosh")
    ),
    case("chlo.acos", [f32(1.5)], f32(NAN)),
    case("chlo.acosh", [f32(0.5, INF)], f32(NAN, INF)),
    case("chlo.asin", [f32(-1.5)], f32(NAN)),
    case("chlo.atanh", [f32(-1, 1, 2)], f32(-INF, INF, NAN)),
    elementwise("chlo.cosh", math.cosh, f32(-3, 0, 0.5, 80)),
    elementwise("chlo.sinh", math.sinh, f32(-3, -0.0, 1e-6, 0.5, 80)),
    elementwise("chlo.tan", math.tan, f32(-3, 0, 0.5, 1.5), rtol=1e-5),
    case("chlo.square", [f32(-3, 0.5, INF)], f32(9, 0.25, INF)),
    case("chlo.square", [c64(1 + 2j)], c64(-3 + 4j)),
]

SPECIAL = [
    elementwise("chlo.bessel_i1e", special.i1e, f32(-5, 0, 0.5, 30)),
    elementwise("chlo.digamma", special.digamma, f32(-1.5, 0.5, 1, 3, 50), rtol=1e-5),
    elementwise("chlo.erf", math.erf, f32(-3, -0.5, 0, 1e-6, 0.75, 3)),
    elementwise("chlo.erf_inv", special.erfinv, f32(-0.9, 0, 0.5, 0.999), rtol=1e-5),
    case("chlo.erf_inv", [f32(-1, 1)], f32(-INF, INF)),
    elementwise("chlo.erfc", math.erfc, f32(-3, -0.5, 0, 0.75, 5), rtol=1e-5),
    elementwise("chlo.lgamma", math.lgamma, f32(-1.5, 0.5, 3, 50), rtol=1e-5),
    case("chlo.lgamma", [f32(0, -1, INF)], f32(INF, INF, INF)),
    case(
        "chlo.polygamma",
        [f32(1, 2, 3), f32(0.5, 1, 3)],
        f32([special.polygamma(n, x) for n, x in ((1, 0.5), (2, 1.0), (3, 3.0))]),
        rtol=1e-5,
    ),
    case("chlo.zeta", [f32(2, 3, 1.5), f32(1, 0.5, 4)], f32(special.zeta([2, 3, 1.5], [1, 0.5, 4])), rtol=1e-5),
    case("chlo.next_after", [f32(1, 0, 1, INF), f32(2, -1, 1, 0)], np.nextafter(f32(1, 0, 1, INF), f32(2, -1, 1, 0))),
]

OTHERS = [
    case("chlo.is_inf", [f32(1, INF, -INF, NAN)], i1(False, True, True, False)),
    case("chlo.is_pos_inf", [f32(1, INF, -INF, NAN)], i1(False, True, False, False)),
    case("chlo.is_neg_inf", [f32(1, INF, -INF, NAN)], i1(False, False, True, False)),
    case("chlo.constant", [], i32(1, 2, 3), attributes="value = dense<[1, 2, 3]> : tensor<3xi32>"),
    case("chlo.constant_like", [f32(1, 2)], f32(7.5, 7.5), attributes="value = 7.5 : f32"),
    case("chlo.mulhi", [i32(2**30, -1, -(2**31)), i32(8, 1, -(2**31))], i32(2, -1, 2**30)),
    case("chlo.mulhi", [u32(2**32 - 1, 2**16), u32(2**32 - 1, 2**16)], u32(2**32 - 2, 1)),
    case("chlo.mulhi", [u8(255, 16), u8(255, 15)], u8(254, 0)),
    case("chlo.top_k", [f32([[3, 1, 3, 2]])], f32([[3, 3, 2]]), i32([[0, 2, 3]]), attributes="k = 3 : i64"),
    case("chlo.top_k", [i8(-5, 7, 0)], i8(7), i32(1), attributes="k = 1 : i64"),
    case("chlo.top_k", [bf16(1, INF, 0, 5)], bf16(INF, 5), i32(1, 3), attributes="k = 2 : i64"),
]

CASES = [*INVERSES, *SPECIAL, *OTHERS]
