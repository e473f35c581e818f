"""What operations return, computed without an array engine: by Python's arithmetic, ``math`` and ``cmath``, and SciPy.

``ELEMENTWISE`` maps an operation to a function of Python numbers, one per tensor, that returns the result for one
element (or a tuple of results). ``WHOLE`` maps an operation to a function of one ``Nested``: the shape and the elements
of a tensor as Python numbers. Options have their defaults.
"""

from __future__ import annotations

import cmath
import itertools
import math
import operator
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import mpmath
import scipy.special

nan, inf = math.nan, math.inf

Number = bool | int | float | complex
Scalar = Callable[..., Any]


class Oracle(NamedTuple):
    """An independent implementation of an operation.

    Args:
        function: the result for one element, from Python numbers.
        exact: whether real results are correctly rounded on every engine, so that not even the last bit may differ.
        nonfinite: the types of number whose infinities and NaN have a defined result. What a function makes of a
            complex infinity is left open by C99, and differs between engines and their versions.
        zeros: whether the sign of a zero is defined.
        absolute: the absolute error allowed, in units of the dtype's epsilon, where results near zero lose digits.
        largest: the largest magnitude of an argument for which no intermediate result overflows or cancels.
        loss: by how much an error grows from step to step, as a factor of the precision.
        typed: whether the function also takes ``dtype=``, the name of the dtype in which the operation computes.
        results: how many results there are for one element, as a tuple if more than one.
    """

    function: Scalar
    exact: bool = False
    nonfinite: tuple[type, ...] = (float,)
    zeros: bool = True
    absolute: float = 0.0
    largest: float = inf
    loss: float = 1.0
    typed: bool = False
    results: int = 1


def exact(function: Scalar, **more: Any) -> Oracle:
    """An oracle whose results are equal to the last bit, signs of zeros included."""
    return Oracle(function, exact=True, **more)


def close(function: Scalar, **more: Any) -> Oracle:
    """An oracle whose results are equal within the precision of the dtype."""
    return Oracle(function, **more)


# A result that the oracle leaves open: a complex number divided by zero, a pole.
UNDEFINED = object()


def is_complex(*values: Any) -> bool:
    return any(isinstance(value, complex) for value in values)


def is_integer(*values: Any) -> bool:
    return all(isinstance(value, int) for value in values)


def is_nan(value: Any) -> bool:
    return cmath.isnan(value) if isinstance(value, complex) else value != value


def is_negative(x: float) -> bool:
    """Whether the sign bit is set."""
    return math.copysign(1.0, x) < 0 if isinstance(x, float) else x < 0


def total(function: Callable[..., Any], complex_function: Callable[..., Any] | None = None) -> Scalar:
    """``function`` of real numbers with NaN outside of its domain and infinity on overflow, instead of exceptions."""

    def evaluate(*values: Any) -> Any:
        chosen = complex_function if complex_function is not None and is_complex(*values) else function
        try:
            return chosen(*values)
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            if is_complex(*values):
                return UNDEFINED
            return inf if isinstance(error, OverflowError) else nan

    return evaluate


def divide(x: Any, y: Any) -> Any:
    if is_complex(x, y):
        return complex(x) / complex(y) if y != 0 else UNDEFINED
    if y == 0:
        if x == 0 or is_nan(x):
            return nan
        return -inf if is_negative(x) != is_negative(y) else inf
    return x / y


def floor(x: Any) -> Any:
    return x if is_integer(x) or not math.isfinite(x) else math.copysign(float(math.floor(x)), x)


def ceil(x: Any) -> Any:
    return x if is_integer(x) or not math.isfinite(x) else math.copysign(float(math.ceil(x)), x)


def trunc(x: Any) -> Any:
    return x if is_integer(x) or not math.isfinite(x) else math.copysign(float(math.trunc(x)), x)


def round_half_even(x: Any) -> Any:
    if is_complex(x):
        return complex(round_half_even(x.real), round_half_even(x.imag))
    return x if is_integer(x) or not math.isfinite(x) else math.copysign(float(round(x)), x)


def floor_divide(x: Any, y: Any, dtype: str = "float64") -> Any:
    if is_integer(x, y):
        return 0 if y == 0 else x // y
    return floor(round_to(divide(x, y), dtype))


def fmod(x: Any, y: Any) -> Any:
    if is_integer(x, y):
        return 0 if y == 0 else int(math.copysign(abs(x) % abs(y), x)) if abs(x) < 2**52 else abs_fmod(x, y)
    return total(math.fmod)(x, y)


def abs_fmod(x: int, y: int) -> int:
    rest = abs(x) % abs(y)
    return -rest if x < 0 else rest


def remainder(x: Any, y: Any) -> Any:
    if is_integer(x, y):
        return 0 if y == 0 else x % y
    rest = total(math.fmod)(x, y)
    if rest == 0:
        return math.copysign(0.0, y)
    if math.isinf(y) and math.isfinite(x):
        return y if is_negative(x) != is_negative(y) else x
    return rest + y if is_negative(rest) != is_negative(y) else rest


LAYOUTS = {"float16": "<e", "bfloat16": "<f", "float32": "<f", "float64": "<d"}


def to_bits(x: float, dtype: str) -> int:
    """The bit pattern of a float that the dtype holds exactly."""
    pattern = int.from_bytes(struct.pack(LAYOUTS[dtype], x), "little")
    return pattern >> 16 if dtype == "bfloat16" else pattern


def from_bits(pattern: int, dtype: str) -> float:
    """The float of a bit pattern."""
    layout = LAYOUTS[dtype]
    pattern = pattern << 16 if dtype == "bfloat16" else pattern
    return struct.unpack(layout, pattern.to_bytes(struct.calcsize(layout), "little"))[0]


def round_to(x: float, dtype: str) -> float:
    """``x`` as the nearest float of a dtype, infinity beyond its range."""
    try:
        single = struct.unpack(LAYOUTS[dtype], struct.pack(LAYOUTS[dtype], x))[0]
    except OverflowError:
        return math.copysign(inf, x)
    if dtype != "bfloat16" or not math.isfinite(single):
        return single
    pattern = int.from_bytes(struct.pack("<f", single), "little")
    return from_bits((pattern + 0x7FFF + (pattern >> 16 & 1)) >> 16, dtype)


def nextafter(x: float, y: float, dtype: str) -> float:
    if is_nan(x) or is_nan(y) or x == y:
        return y if x == y else nan
    if x == 0:
        return math.copysign(from_bits(1, dtype), y)
    return from_bits(to_bits(x, dtype) + (1 if (y > x) == (x > 0) else -1), dtype)


def power(x: Any, y: Any) -> Any:
    if is_integer(x, y):
        if y >= 0:
            return pow(x, y, 2**64) if y > 64 else x**y
        return x if x == 1 else (1 if y % 2 == 0 else -1) if x == -1 else 0
    if is_complex(x, y):
        return total(operator.pow)(complex(x), complex(y)) if x != 0 else UNDEFINED
    try:
        return math.pow(x, y)
    except ValueError:
        odd = math.isfinite(y) and y == int(y) and int(y) % 2 == 1
        return (-inf if is_negative(x) and odd else inf) if x == 0 else nan
    except OverflowError:
        return -inf if x < 0 and int(y) % 2 == 1 else inf


def sign(x: Any) -> Any:
    if is_complex(x):
        return x / abs(x) if x != 0 else 0j
    return x if is_nan(x) else (x > 0) - (x < 0)


def log(x: Any, base: Callable[[float], float] = math.log) -> Any:
    if x == 0:
        return -inf
    return nan if x < 0 else base(x)


def complex_log(x: complex, scale: float = 1.0) -> complex:
    if x == 0:
        return complex(-inf, math.atan2(x.imag, x.real) / scale)
    found = cmath.log(x)
    return complex(found.real / scale, found.imag / scale)


def log1p(x: Any) -> Any:
    return -inf if x == -1 else total(math.log1p)(x)


def complex_log1p(x: complex) -> complex:
    return complex_log(complex(1.0 + x.real, x.imag))


def complex_expm1(x: complex) -> complex:
    found = cmath.exp(x)
    return complex(found.real - 1.0, found.imag)


def logaddexp(x: float, y: float, exp: Callable[[float], float], log1: Callable[[float], float]) -> float:
    if is_nan(x) or is_nan(y):
        return nan
    high, low = max(x, y), min(x, y)
    if math.isinf(high) or low == -inf:
        return high
    return high + log1(exp(low - high))


def log2_1p(x: float) -> float:
    return math.log1p(x) / math.log(2)


def reciprocal(x: Any) -> Any:
    return divide(1.0, x)


def rsqrt(x: Any) -> Any:
    if is_complex(x):
        return 1 / cmath.sqrt(x) if x != 0 else UNDEFINED
    return divide(1.0, total(math.sqrt)(x))


def atanh(x: float) -> float:
    return math.copysign(inf, x) if abs(x) == 1 else total(math.atanh)(x)


def signed_overflow(function: Callable[[float], float]) -> Scalar:
    """An odd function that overflows to the infinity of its argument's sign."""

    def evaluate(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return math.copysign(inf, x)

    return evaluate


def sinc(x: Any) -> Any:
    if x == 0:
        return 1.0
    if is_complex(x):
        return cmath.sin(cmath.pi * x) / (cmath.pi * x)
    return nan if math.isinf(x) else sin_pi(x) / (math.pi * x)


def sin_pi(x: float) -> float:
    """``sin(pi * x)``, by reduction before the product is rounded."""
    return math.sin(math.pi * math.remainder(x, 2.0))


def heaviside(x: float, y: float) -> float:
    return x if is_nan(x) else y if x == 0 else float(x > 0)


def maximum(x: Any, y: Any) -> Any:
    return x if is_nan(x) else y if is_nan(y) or y > x else x


def minimum(x: Any, y: Any) -> Any:
    return x if is_nan(x) else y if is_nan(y) or y < x else x


def fmax(x: Any, y: Any) -> Any:
    return y if is_nan(x) else x if is_nan(y) else maximum(x, y)


def fmin(x: Any, y: Any) -> Any:
    return y if is_nan(x) else x if is_nan(y) else minimum(x, y)


def clip(x: Any, low: Any, high: Any) -> Any:
    return minimum(maximum(x, low), high)


def frexp(x: float) -> tuple[float, int]:
    return math.frexp(x) if math.isfinite(x) else (x, 0)


def divmod_(x: Any, y: Any) -> tuple[Any, Any]:
    rest = remainder(x, y)
    if is_integer(x, y):
        return floor_divide(x, y), rest
    if y == 0 or not math.isfinite(x) or is_nan(y):
        return (divide(x, y) if y == 0 or math.isfinite(y) else nan), rest
    if math.isinf(y):
        return (-1.0 if rest == y else math.copysign(0.0, x) * math.copysign(1.0, y)), rest
    quotient = divide(x - rest, y)
    near = round(quotient) if math.isfinite(quotient) else quotient
    return (float(near) if near else math.copysign(0.0, divide(x, y))), rest


def erfinv(x: float) -> float:
    return float(scipy.special.erfinv(x)) if x else x


def lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return inf
    return total(math.lgamma)(x)


def digamma(x: float) -> float:
    if x == 0:
        return -math.copysign(inf, x)
    return nan if x < 0 and (math.isinf(x) or x == math.floor(x)) else float(mpmath.digamma(x))


def angle(x: Any) -> float:
    return cmath.phase(x) if is_complex(x) else x if is_nan(x) else math.atan2(0.0, x)


def divide_no_nan(x: Any, y: Any) -> Any:
    return 0.0 if y == 0 else divide(x, y)


def lerp(x: Any, y: Any, weight: Any) -> Any:
    return x + weight * (y - x)


def square(x: Any) -> Any:
    return x * x


def gaussian(x: float, mu: float, sigma: float) -> float:
    return divide(total(math.exp)(-(divide(x - mu, sigma) ** 2) / 2), sigma * math.sqrt(2 * math.pi))


def exponential_decay(v: Any, rate: Any, time: Any) -> Any:
    return v * total(math.exp, cmath.exp)(-rate * time)


def nan_to_num(x: Any) -> Any:
    return 0.0 if is_nan(x) else x


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x)) if x == x else x


def softplus(x: float, threshold: float = 20.0) -> float:
    return x if x > threshold else math.log1p(total(math.exp)(x)) if x == x else x


def elu(x: float) -> float:
    return x if not x < 0 else math.expm1(x)


def silu(x: float) -> float:
    return x * sigmoid(x)


def mish(x: float) -> float:
    return x * math.tanh(softplus(x, inf) if x < 700 else x)


def gelu(x: float) -> float:
    return x * (math.erfc(-x / math.sqrt(2)) / 2)


def relu(x: float) -> float:
    return x if is_nan(x) or x > 0 else 0.0


def hard_sigmoid(x: float) -> float:
    return x if is_nan(x) else min(max(x + 3, 0.0), 6.0) / 6


def hard_silu(x: float) -> float:
    return x * hard_sigmoid(x)


def soft_shrink(x: float) -> float:
    return x if is_nan(x) else x - 0.5 if x > 0.5 else x + 0.5 if x < -0.5 else 0.0


def squareplus(x: float) -> float:
    return 0.0 if x == -inf else (x + math.hypot(x, 2.0)) / 2 if x > 0 or x != x else 2 / (math.hypot(x, 2.0) - x)


def log_sigmoid(x: float) -> float:
    return x if is_nan(x) else -math.log1p(math.exp(-x)) if x >= 0 else x - math.log1p(math.exp(x))


def is_close(x: Any, y: Any) -> bool:
    if x == y:
        return True
    if is_nan(x) or is_nan(y) or cmath.isinf(x) or cmath.isinf(y):
        return False
    return abs(x - y) <= 1e-8 + 1e-5 * abs(y)


def part_test(test: Callable[[float], bool], combine: Callable[[Iterable[bool]], bool]) -> Scalar:
    """A test of a number by its parts."""
    return lambda x: combine(map(test, (x.real, x.imag))) if is_complex(x) else bool(test(x))


EVERY = (float, complex)

ELEMENTWISE: dict[str, Oracle] = {
    # math
    "add": exact(lambda x, y: x or y if isinstance(x, bool) else x + y, nonfinite=EVERY),
    "subtract": exact(operator.sub, nonfinite=EVERY),
    "multiply": exact(lambda x, y: x and y if isinstance(x, bool) else x * y),
    "divide": exact(divide),
    "floor_divide": exact(floor_divide, typed=True),
    "remainder": exact(remainder),
    "fmod": exact(fmod),
    "divmod": exact(divmod_, results=2),
    "power": close(power),
    "float_power": close(lambda x, y: power(*(v if is_complex(v) else float(v) for v in (x, y)))),
    "negative": exact(operator.neg, nonfinite=EVERY),
    "positive": exact(operator.pos, nonfinite=EVERY),
    "abs": exact(abs),
    "fabs": exact(abs),
    "sign": exact(sign, zeros=False),
    "signbit": exact(is_negative),
    "copysign": exact(math.copysign),
    "nextafter": exact(nextafter, zeros=False, typed=True),
    "square": exact(square),
    "sqrt": close(total(math.sqrt, cmath.sqrt)),
    "rsqrt": close(rsqrt),
    "cbrt": close(math.cbrt),
    "reciprocal": exact(reciprocal),
    "exp": close(total(math.exp, cmath.exp)),
    "exp2": close(total(math.exp2)),
    "expm1": close(total(math.expm1, complex_expm1)),
    "log": close(lambda x: complex_log(x) if is_complex(x) else log(x)),
    "log1p": close(lambda x: complex_log1p(x) if is_complex(x) else log1p(x)),
    "log2": close(lambda x: complex_log(x, math.log(2)) if is_complex(x) else log(x, math.log2)),
    "log10": close(lambda x: complex_log(x, math.log(10)) if is_complex(x) else log(x, math.log10)),
    "logaddexp": close(lambda x, y: logaddexp(x, y, math.exp, math.log1p), zeros=False, absolute=2),
    "logaddexp2": close(lambda x, y: logaddexp(x, y, math.exp2, log2_1p), zeros=False, absolute=2),
    "hypot": close(math.hypot),
    "sin": close(total(math.sin, cmath.sin), absolute=1),
    "cos": close(total(math.cos, cmath.cos), absolute=1),
    "tan": close(total(math.tan, cmath.tan), absolute=1),
    "asin": close(total(math.asin, cmath.asin)),
    "acos": close(total(math.acos, cmath.acos)),
    "atan": close(total(math.atan, cmath.atan)),
    "atan2": close(math.atan2),
    "sinh": close(lambda x: total(cmath.sinh)(x) if is_complex(x) else signed_overflow(math.sinh)(x)),
    "cosh": close(total(math.cosh, cmath.cosh)),
    "tanh": close(total(math.tanh, cmath.tanh)),
    "asinh": close(total(math.asinh, cmath.asinh)),
    "acosh": close(total(math.acosh, cmath.acosh)),
    "atanh": close(lambda x: total(cmath.atanh)(x) if is_complex(x) else atanh(x)),
    "deg2rad": close(math.radians),
    "rad2deg": close(math.degrees),
    "sinc": close(sinc, zeros=False, absolute=2, largest=1e37),
    "heaviside": exact(heaviside),
    "floor": exact(floor),
    "ceil": exact(ceil),
    "trunc": exact(trunc),
    "round": exact(round_half_even),
    "rint": exact(round_half_even),
    "clip": exact(clip, zeros=False),
    "maximum": exact(maximum, zeros=False),
    "minimum": exact(minimum, zeros=False),
    "fmax": exact(fmax, zeros=False),
    "fmin": exact(fmin, zeros=False),
    "nan_to_num": exact(nan_to_num, nonfinite=()),
    "gcd": exact(math.gcd),
    "lcm": exact(math.lcm),
    "ldexp": exact(lambda x, y: signed_overflow(lambda v: math.ldexp(v, y))(x)),
    "frexp": exact(frexp, results=2),
    "real": exact(lambda x: x.real, nonfinite=EVERY),
    "imag": exact(lambda x: x.imag if is_complex(x) else 0, nonfinite=EVERY),
    "conj": exact(lambda x: x.conjugate(), nonfinite=EVERY),
    "angle": close(angle),
    "erf": close(math.erf, absolute=1e-3),
    "erfc": close(math.erfc),
    "erfinv": close(erfinv),
    "lgamma": close(lgamma, absolute=16),
    "digamma": close(digamma, absolute=4),
    "i0": close(lambda x: float(scipy.special.i0(x))),
    "divide_no_nan": exact(divide_no_nan),
    "lerp": close(lerp, nonfinite=(), largest=100),
    # stats and vector
    "gaussian": close(gaussian, nonfinite=(), largest=100),
    "exponential_decay": close(exponential_decay, nonfinite=(), largest=4, loss=8),
    # creation, control, device and dtypes
    "copy": exact(lambda x: x, nonfinite=EVERY),
    "stop_gradient": exact(lambda x: x, nonfinite=EVERY),
    "to_numpy": exact(lambda x: x, nonfinite=EVERY),
    "zeros_like": exact(lambda x: 0, nonfinite=EVERY),
    "ones_like": exact(lambda x: 1, nonfinite=EVERY),
    # comparison
    "equal": exact(operator.eq, nonfinite=EVERY),
    "not_equal": exact(operator.ne, nonfinite=EVERY),
    "less": exact(operator.lt),
    "less_equal": exact(operator.le),
    "greater": exact(operator.gt),
    "greater_equal": exact(operator.ge),
    "isclose": exact(is_close),
    "isnan": exact(is_nan, nonfinite=EVERY),
    "isinf": exact(part_test(math.isinf, any), nonfinite=EVERY),
    "isfinite": exact(part_test(math.isfinite, all), nonfinite=EVERY),
    "isposinf": exact(lambda x: x == inf),
    "isneginf": exact(lambda x: x == -inf),
    "isreal": exact(lambda x: x.imag == 0, nonfinite=EVERY),
    "logical_and": exact(lambda x, y: bool(x) and bool(y), nonfinite=EVERY),
    "logical_or": exact(lambda x, y: bool(x) or bool(y), nonfinite=EVERY),
    "logical_not": exact(operator.not_, nonfinite=EVERY),
    "logical_xor": exact(lambda x, y: bool(x) != bool(y), nonfinite=EVERY),
    "where": exact(lambda condition, x, y: x if condition else y, nonfinite=EVERY),
    # activations
    "relu": exact(relu, zeros=False),
    "relu6": exact(lambda x: min(relu(x), 6.0) if x == x else x, zeros=False),
    "leaky_relu": close(lambda x: x if not x < 0 else 0.01 * x, zeros=False),
    "prelu": exact(lambda x, weight: x if x > 0 else weight * x, nonfinite=()),
    "elu": close(elu),
    "selu": close(lambda x: 1.0507009873554805 * (x if not x < 0 else 1.6732632423543772 * math.expm1(x))),
    "celu": close(elu),
    "gelu": close(gelu, absolute=8, largest=1e37),
    "silu": close(silu),
    "mish": close(mish),
    "sigmoid": close(sigmoid),
    "hard_sigmoid": close(hard_sigmoid, absolute=2),
    "hard_silu": close(hard_silu, absolute=2, largest=1e37),
    "hard_tanh": exact(lambda x: x if is_nan(x) else min(max(x, -1.0), 1.0)),
    "lecun_tanh": close(lambda x: 1.7159 * math.tanh(2 * x / 3)),
    "tanh_shrink": close(lambda x: x - math.tanh(x), absolute=2),
    "soft_shrink": exact(soft_shrink, zeros=False),
    "hard_shrink": exact(lambda x: 0.0 if -0.5 <= x <= 0.5 else x),
    "softplus": close(softplus),
    "softsign": close(lambda x: x / (1 + abs(x))),
    "squareplus": close(squareplus, absolute=2, largest=1e37),
    "log_sigmoid": close(log_sigmoid, zeros=False),
    # bitwise
    "bitwise_and": exact(operator.and_),
    "bitwise_or": exact(operator.or_),
    "bitwise_xor": exact(operator.xor),
    "bitwise_invert": exact(lambda x: not x if isinstance(x, bool) else ~x),
    "bitwise_left_shift": exact(lambda x, y, dtype: x << y if 0 <= y < width(dtype) else 0, typed=True),
    "bitwise_right_shift": exact(lambda x, y, dtype: x >> y if 0 <= y < width(dtype) else -(x < 0), typed=True),
    "rotate_left": exact(lambda x, shift, dtype: rotate(x, shift, width(dtype)), typed=True),
    "rotate_right": exact(lambda x, shift, dtype: rotate(x, -shift, width(dtype)), typed=True),
    "count_ones": exact(lambda x, dtype: (x % 2 ** width(dtype)).bit_count(), typed=True),
    "count_zeros": exact(lambda x, dtype: width(dtype) - (x % 2 ** width(dtype)).bit_count(), typed=True),
    "get_bit": exact(lambda x, position, dtype: x >> position & 1 if 0 <= position < width(dtype) else 0, typed=True),
    "set_bit": exact(lambda x, position, value, dtype: set_bit(x, position, value, width(dtype)), typed=True),
    "toggle_bit": exact(
        lambda x, position, dtype: x ^ 1 << position if 0 <= position < width(dtype) else x, typed=True
    ),
    "binary_wave_propagate": exact(lambda x, shift, dtype: propagate(x, shift, width(dtype)), typed=True),
}


def width(dtype: str) -> int:
    """The number of bits of an integer dtype."""
    return int(dtype.lstrip("uint"))


def rotate(x: int, shift: int, bits: int) -> int:
    pattern, places = x % 2**bits, shift % bits
    return pattern << places | pattern >> bits - places


def set_bit(x: int, position: int, value: bool, bits: int) -> int:
    if not 0 <= position < bits:
        return x
    return x | 1 << position if value else x & ~(1 << position)


def propagate(x: int, shift: int, bits: int) -> int:
    if abs(shift) >= bits:
        return 0 if shift > 0 or x >= 0 else -1
    return x << shift if shift > 0 else x >> -shift


class Nested(NamedTuple):
    """A tensor as Python numbers: its shape, and its elements in row-major order."""

    shape: tuple[int, ...]
    elements: list[Any]

    def __getitem__(self, index: Any) -> Any:
        place = 0
        for i, n in zip(index, self.shape, strict=True):
            place = place * n + i
        return self.elements[place]


def indices(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Every index into a tensor of that shape, in row-major order."""
    return list(itertools.product(*map(range, shape)))


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that tensors of these shapes broadcast to."""
    ndim = max(map(len, shapes))
    columns = zip(*((1,) * (ndim - len(shape)) + tuple(shape) for shape in shapes), strict=True)
    return tuple(next((n for n in column if n != 1), 1) for column in columns)


def broadcast(function: Callable[..., Any], *tensors: Nested) -> Nested:
    """``function`` of each group of elements that broadcasting brings together."""
    shape = broadcast_shape(*(tensor.shape for tensor in tensors))

    def element(tensor: Nested, index: tuple[int, ...]) -> Any:
        own = index[len(shape) - len(tensor.shape) :]
        return tensor[tuple(i if n > 1 else 0 for i, n in zip(own, tensor.shape, strict=True))]

    return Nested(shape, [function(*(element(tensor, index) for tensor in tensors)) for index in indices(shape)])


def moved(result_shape: Callable[..., tuple[int, ...]], source: Callable[..., tuple[int, ...]]) -> Callable:
    """An operation that moves elements: ``source`` says which one comes to an index."""

    def evaluate(x: Nested) -> Nested:
        shape = result_shape(*x.shape)
        return Nested(shape, [x[source(index, x.shape)] for index in indices(shape)])

    return evaluate


def reduced(function: Callable[[list[Any]], Any]) -> Callable[[Nested], Nested]:
    """A reduction of all elements."""
    return lambda x: Nested((), [function(x.elements)])


def scanned(function: Callable[[list[Any]], list[Any]]) -> Callable[[Nested], Nested]:
    """An operation on each row along the last axis, whose results have the length of the row."""

    def evaluate(x: Nested) -> Nested:
        width = x.shape[-1]
        rows = [x.elements[i : i + width] for i in range(0, len(x.elements), width)] if width else []
        return Nested(x.shape, [value for row in rows for value in function(row)])

    return evaluate


def flattened(function: Callable[[list[Any]], list[Any]]) -> Callable[[Nested], Nested]:
    """An operation on all elements in a row, that returns a row."""

    def evaluate(x: Nested) -> Nested:
        found = function(x.elements)
        return Nested((len(found),), found)

    return evaluate


def order(value: Any) -> tuple[Any, ...]:
    """A key that sorts NaN last and complex numbers by real part first."""
    if is_complex(value):
        return (is_nan(value), is_nan(value.real), order(value.real), order(value.imag))
    return (True, 0) if is_nan(value) else (False, value)


def sort(row: list[Any]) -> list[Any]:
    return sorted(row, key=order)


def argsort(row: list[Any]) -> list[int]:
    return sorted(range(len(row)), key=lambda i: order(row[i]))


def add_up(values: Iterable[Any]) -> Any:
    """The sum of numbers, without rounding in between where they are floats."""
    found = list(values)
    if any(isinstance(v, complex) for v in found):
        return complex(add_up(v.real for v in found), add_up(v.imag for v in found))
    if all(isinstance(v, int) for v in found):
        return sum(found)
    try:
        return math.fsum(found)
    except (ValueError, OverflowError):
        return sum(found)


def mean(values: Sequence[Any]) -> Any:
    return add_up(values) / len(values) if values else nan


def variance(values: Sequence[Any]) -> float:
    middle = mean(values)
    return mean([abs(v - middle) ** 2 if math.isfinite(abs(v - middle)) else nan for v in values])


def greatest(values: Sequence[Any]) -> Any:
    return next((v for v in values if is_nan(v)), None) if any(map(is_nan, values)) else max(values)


def least(values: Sequence[Any]) -> Any:
    return next((v for v in values if is_nan(v)), None) if any(map(is_nan, values)) else min(values)


def first_index(row: list[Any], value: Any) -> int:
    return next(i for i, v in enumerate(row) if v == value or (is_nan(v) and is_nan(value)))


def median(values: Sequence[Any]) -> Any:
    if not values or any(map(is_nan, values)):
        return nan
    ranked, half = sorted(values), len(values) // 2
    return ranked[half] if len(values) % 2 else ranked[half - 1] + (ranked[half] - ranked[half - 1]) / 2


def known(values: Sequence[Any]) -> list[Any]:
    """The values that are not NaN."""
    return [v for v in values if not is_nan(v)]


def logsumexp(values: Sequence[float]) -> float:
    top = greatest(values) if values else -inf
    if not math.isfinite(top):
        return top
    return top + math.log(add_up(math.exp(v - top) for v in values))


def accumulate(function: Callable[[Any, Any], Any]) -> Callable[[list[Any]], list[Any]]:
    return lambda row: list(itertools.accumulate(row, function))


def distinct(values: Sequence[Any]) -> list[Any]:
    """The different values in order; each NaN differs from every other."""
    ranked = sorted(values, key=order)
    return [v for i, v in enumerate(ranked) if i == 0 or v != ranked[i - 1]]


def triangle(keep: Callable[[int, int], bool]) -> Callable[[Nested], Nested]:
    def evaluate(x: Nested) -> Nested:
        return Nested(x.shape, [x[i] if keep(i[-2], i[-1]) else 0 for i in indices(x.shape)])

    return evaluate


def softmax(row: list[float]) -> list[float]:
    total_ = logsumexp(row)
    return [math.exp(v - total_) if math.isfinite(total_) else nan for v in row]


def truths(x: Nested) -> list[tuple[int, ...]]:
    return [index for index, value in zip(indices(x.shape), x.elements, strict=True) if value]


class Whole(NamedTuple):
    """An independent implementation of an operation on one tensor as a whole.

    Args:
        function: from a ``Nested`` to a ``Nested``, or to a tuple of them.
        least_ndim: how many axes the tensor must have.
        empty: whether an empty tensor has a result, not an error.

    The others are as in ``Oracle``.
    """

    function: Callable[[Nested], Any]
    exact: bool = True
    nonfinite: tuple[type, ...] = EVERY
    zeros: bool = True
    absolute: float = 0.0
    largest: float = inf
    loss: float = 1.0
    least_ndim: int = 0
    empty: bool = True


def turned(*shape: int) -> tuple[int, ...]:
    return (*shape[:-2], shape[-1], shape[-2])


MOMENT: dict[str, Any] = {"exact": False, "nonfinite": (float,), "zeros": False, "largest": 1e3}
ROWS: dict[str, Any] = {"exact": False, "zeros": False, "nonfinite": (), "absolute": 2, "largest": 30, "least_ndim": 1}

WHOLE: dict[str, Whole] = {
    # manipulation and creation
    "ravel": Whole(flattened(list)),
    "transpose": Whole(moved(lambda *s: s[::-1], lambda i, s: i[::-1])),
    "matrix_transpose": Whole(moved(turned, lambda i, s: turned(*i)), least_ndim=2),
    "squeeze": Whole(lambda x: Nested(tuple(n for n in x.shape if n != 1), x.elements)),
    "flip": Whole(moved(lambda *s: s, lambda i, s: tuple(n - 1 - k for k, n in zip(i, s, strict=True)))),
    "flipud": Whole(moved(lambda *s: s, lambda i, s: (s[0] - 1 - i[0], *i[1:])), least_ndim=1),
    "fliplr": Whole(moved(lambda *s: s, lambda i, s: (i[0], s[1] - 1 - i[1], *i[2:])), least_ndim=2),
    "rot90": Whole(moved(lambda a, b, *s: (b, a, *s), lambda i, s: (i[1], s[1] - 1 - i[0], *i[2:])), least_ndim=2),
    "unstack": Whole(
        lambda x: tuple(Nested(x.shape[1:], [x[(k, *i)] for i in indices(x.shape[1:])]) for k in range(x.shape[0])),
        least_ndim=1,
    ),
    "tril": Whole(triangle(lambda i, j: j <= i), least_ndim=2),
    "triu": Whole(triangle(lambda i, j: j >= i), least_ndim=2),
    # reductions
    "all": Whole(reduced(lambda v: all(map(bool, v)))),
    "any": Whole(reduced(lambda v: any(map(bool, v)))),
    "sum": Whole(reduced(add_up), exact=False, zeros=False),
    "prod": Whole(reduced(math.prod), exact=False, nonfinite=(), largest=8),
    "mean": Whole(reduced(mean), **MOMENT),
    "var": Whole(reduced(variance), **MOMENT),
    "std": Whole(reduced(lambda v: math.sqrt(variance(v))), **MOMENT),
    "max": Whole(reduced(greatest), empty=False),
    "min": Whole(reduced(least), empty=False),
    "ptp": Whole(reduced(lambda v: greatest(v) - least(v)), empty=False),
    "median": Whole(reduced(median), **MOMENT),
    "nansum": Whole(reduced(lambda v: add_up(known(v))), exact=False, zeros=False),
    "nanprod": Whole(reduced(lambda v: math.prod(known(v))), exact=False, nonfinite=(), largest=8),
    "nanmean": Whole(reduced(lambda v: mean(known(v))), **MOMENT),
    "nanvar": Whole(reduced(lambda v: variance(known(v))), **MOMENT),
    "nanstd": Whole(reduced(lambda v: math.sqrt(variance(known(v)))), **MOMENT),
    "nanmedian": Whole(reduced(lambda v: median(known(v))), **MOMENT),
    "nanmax": Whole(reduced(lambda v: max(known(v), default=nan)), empty=False),
    "nanmin": Whole(reduced(lambda v: min(known(v), default=nan)), empty=False),
    "logsumexp": Whole(reduced(logsumexp), exact=False),
    "count_nonzero": Whole(reduced(lambda v: sum(map(bool, v)))),
    "argmax": Whole(reduced(lambda v: first_index(v, greatest(v))), empty=False),
    "argmin": Whole(reduced(lambda v: first_index(v, least(v))), empty=False),
    "vector_norm": Whole(reduced(lambda v: math.hypot(*map(abs, v))), exact=False, nonfinite=(), largest=1e3),
    # along the last axis
    "sort": Whole(scanned(sort), zeros=False, least_ndim=1),
    "argsort": Whole(scanned(argsort), least_ndim=1),
    "softmax": Whole(scanned(softmax), **ROWS),
    "log_softmax": Whole(scanned(lambda r: [v - logsumexp(r) for v in r]), **ROWS),
    # of all elements in a row
    "nonzero": Whole(
        lambda x: tuple(
            Nested((len(found),), [index[axis] for index in found])
            for found in [truths(x)]
            for axis in range(len(x.shape))
        ),
        least_ndim=1,
    ),
    "argwhere": Whole(
        lambda x: Nested((len(truths(x)), len(x.shape)), [i for index in truths(x) for i in index]), least_ndim=1
    ),
    "unique_values": Whole(flattened(distinct), zeros=False),
}


def summed(pairs_of: Iterable[tuple[Any, Any]]) -> Any:
    return add_up([x * y for x, y in pairs_of])


def dot(x: Nested, y: Nested) -> Nested:
    if not x.shape or not y.shape:
        return broadcast(operator.mul, x, y)
    before, after = x.shape[:-1], (*y.shape[:-2], *y.shape[-1:]) if len(y.shape) > 1 else ()
    found = []
    for i in indices(before):
        for j in indices(after):
            terms = range(x.shape[-1])
            found.append(summed((x[(*i, k)], y[(*j[:-1], k, *j[-1:])]) for k in terms))
    return Nested((*before, *after), found)


def matmul(x: Nested, y: Nested) -> Nested:
    left = Nested((1, *x.shape), x.elements) if len(x.shape) == 1 else x
    right = Nested((*y.shape, 1), y.elements) if len(y.shape) == 1 else y
    batch = broadcast_shape(left.shape[:-2], right.shape[:-2])
    found = []
    for *i, row, column in indices((*batch, left.shape[-2], right.shape[-1])):
        a = tuple(
            k if n > 1 else 0 for k, n in zip(i[len(batch) - len(left.shape) + 2 :], left.shape[:-2], strict=True)
        )
        b = tuple(
            k if n > 1 else 0 for k, n in zip(i[len(batch) - len(right.shape) + 2 :], right.shape[:-2], strict=True)
        )
        found.append(summed((left[(*a, row, k)], right[(*b, k, column)]) for k in range(left.shape[-1])))
    rows = left.shape[-2:-1] if len(x.shape) > 1 else ()
    columns = right.shape[-1:] if len(y.shape) > 1 else ()
    return Nested((*batch, *rows, *columns), found)


def inner(x: Nested, y: Nested) -> Nested:
    if not x.shape or not y.shape:
        return broadcast(operator.mul, x, y)
    shape = (*x.shape[:-1], *y.shape[:-1])
    cut = len(x.shape) - 1
    terms = range(x.shape[-1])
    return Nested(shape, [summed((x[(*i[:cut], k)], y[(*i[cut:], k)]) for k in terms) for i in indices(shape)])


def vdot(x: Nested, y: Nested) -> Nested:
    return Nested((), [summed((a.conjugate(), b) for a, b in zip(x.elements, y.elements, strict=True))])


def outer(x: Nested, y: Nested) -> Nested:
    shape = (len(x.elements), len(y.elements))
    return Nested(shape, [a * b for a in x.elements for b in y.elements])


def kron(x: Nested, y: Nested) -> Nested:
    ndim = max(len(x.shape), len(y.shape))
    left = Nested((1,) * (ndim - len(x.shape)) + x.shape, x.elements)
    right = Nested((1,) * (ndim - len(y.shape)) + y.shape, y.elements)
    shape = tuple(a * b for a, b in zip(left.shape, right.shape, strict=True))
    found = []
    for index in indices(shape):
        parts = [divmod(i, n) for i, n in zip(index, right.shape, strict=True)]
        found.append(left[tuple(a for a, _ in parts)] * right[tuple(b for _, b in parts)])
    return Nested(shape, found)


def vecdot(x: Nested, y: Nested) -> Nested:
    products = broadcast(lambda a, b: a.conjugate() * b, x, y)
    width = products.shape[-1]
    rows = indices(products.shape[:-1])
    return Nested(products.shape[:-1], [add_up(products[(*i, k)] for k in range(width)) for i in rows])


# Products of two tensors, and the pairs of shapes that each is tried with.
_VECTORS = [((3,), (3,)), ((1,), (1,)), ((0,), (0,))]
_MATRICES = [((2, 3), (3, 4)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((1, 1), (1, 1)), ((2, 3), (3,)), ((3,), (3, 2))]
_STACKS = [((2, 2, 3), (3, 4)), ((2, 3), (4, 3, 2)), ((2, 1, 2, 3), (3, 3, 2)), ((0, 2, 3), (3, 1))]
_ANY = [((), ()), ((), (2, 3)), ((2,), (3,)), ((2, 2), (3, 1)), ((0,), (2,)), ((2, 1, 2), (1, 3, 2)), ((3,), (2, 2))]

PRODUCTS: dict[str, tuple[Callable[[Nested, Nested], Nested], list[tuple[tuple[int, ...], tuple[int, ...]]]]] = {
    "matmul": (matmul, [*_VECTORS, *_MATRICES, *_STACKS]),
    "dot": (dot, [*_VECTORS, *_MATRICES, ((2, 2, 3), (4, 3, 2)), ((), ()), ((), (2, 3)), ((2,), ())]),
    "inner": (inner, [*_VECTORS, ((2, 3), (4, 3)), ((2, 2, 3), (3,)), ((0, 3), (2, 3)), ((), (2,))]),
    "vdot": (vdot, [*_VECTORS, ((2, 3), (2, 3)), ((2, 3), (6,)), ((), ())]),
    "outer": (outer, _ANY),
    "kron": (kron, _ANY),
    "vecdot": (vecdot, [*_VECTORS, ((2, 3), (2, 3)), ((2, 1, 3), (4, 3)), ((0, 3), (3,))]),
}

# Operations on tensors alone that have no oracle here, and what judges them instead.
JUDGED_ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(
        ["all_sum", "all_mean", "all_max", "all_gather", "reduce_scatter"],
        "tests/test_distributed.py: the values of several ranks",
    ),
    **dict.fromkeys(
        ["det", "slogdet", "logdet", "inv", "solve", "lu", "lu_factor", "svdvals", "eig", "eigvals", "eigh"],
        "tests/test_linearalg.py: the factors make the matrix",
    ),
    **dict.fromkeys(
        ["eigvalsh", "expm", "logm_spd", "sqrtm_spd", "orthogonalize"],
        "tests/test_linearalg.py: SciPy, and the factors make the matrix",
    ),
    **dict.fromkeys(["shape", "ndim", "size", "dtype", "get_device"], "the result is not a tensor"),
    **dict.fromkeys(["view_as_real", "view_as_complex"], "tests/test_manipulation.py"),
    **dict.fromkeys(["unique_all", "unique_counts", "unique_inverse", "union1d"], "tests/test_indexing.py"),
    "linear": "tests/test_fused.py: torch",
    "polyval": "tests/test_math.py: one argument is a row, whatever the other is",
}
