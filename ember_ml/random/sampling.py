"""Samplers: distributions from random bits, with operations that every engine rounds in the same way.

A sampler takes a ``Source`` of random bits, whose ``xp`` holds the few functions that engines spell differently
(``backend/<engine>/random.py``). It only uses sums, products, quotients and square roots, whose results IEEE 754
defines exactly. Logarithms and exponentials are polynomials defined here, since those of the engines differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ember_ml.random import threefry
from ember_ml.random.threefry import MASK, TURNS, Words

# Significant bits of each dtype.
PRECISION = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}


class Source:
    """Random bits of the elements of one draw, in 32-bit words.

    An element may need more bits than one block has: each ``turn`` is a further block under a different key.

    Args:
        start: position of the first element.
        count: number of elements.
        places: positions of the elements, if they are not consecutive.
        base: number that turns are counted from.
        rounds: number of rounds to compute at once, one row each, and the number of turns of a round.
    """

    def __init__(
        self,
        xp: Any,
        key: Words | None,
        start: int,
        count: int,
        device: Any,
        places: Any = None,
        base: int = 0,
        rounds: tuple[int, int] | None = None,
    ) -> None:
        self.xp = xp
        self.key = key
        self.start = start
        self.count = count
        self.device = device
        self.places = places
        self.base = base
        self.rounds = rounds

    def words(self, turn: int | None = None) -> Any:
        """One word per element: half a block, or one word of a block if ``turn`` is given."""
        if self.key is None:
            return self.xp.native_words(self._shape(), self.device)
        if turn is not None:
            return self.pairs(turn)[0]
        return self.xp.words(self.key, self.start, self.count, self.device)

    def pairs(self, turn: int | None = None) -> tuple[Any, Any]:
        """Two words per element: one block."""
        if self.key is None:
            return self.words(), self.words()
        key = self.key if turn is None else self._key_of(self.key, turn)
        if self.places is None:
            first, second = self.xp.pairs(key, self.start, self.count, self.device)
            return first, second
        high, low = self.xp.word(self.places >> 32), self.xp.word(self.places & MASK)
        return threefry.block(key, high, low)

    def below(self, limit: int) -> Any:
        """Whether each of the ``words`` is below ``limit``."""
        if self.key is None:
            return self.words() < limit
        return self.xp.below(self.key, self.start, self.count, limit, self.device)

    def _key_of(self, key: Words, turn: int) -> Words:
        """Key of a turn; a column of keys for several rounds at once."""
        if self.rounds is None and type(key[0]) is int:
            return threefry.block(key, TURNS, self.base + turn)
        rounds, turns = self.rounds or (1, 1)
        number = (TURNS << 32) + self.base + turn
        first, second = self.xp.pairs(key, number, (rounds - 1) * turns + 1, self.device)
        if self.rounds is None:
            return first, second
        return first[::turns].reshape(rounds, 1), second[::turns].reshape(rounds, 1)

    def _shape(self) -> tuple[int, ...]:
        count = self.count if self.places is None else len(self.places)
        return (count,) if self.rounds is None else (self.rounds[0], count)

    def later(self, turns: int) -> Source:
        """Source of the same elements, ``turns`` turns later."""
        return self._changed(base=self.base + turns)

    def at(self, chosen: Any) -> Source:
        """Source of some of the elements."""
        places = self.xp.positions(self.start, self.count, self.device) if self.places is None else self.places
        return self._changed(places=places[chosen])

    def stacked(self, rounds: int, turns: int) -> Source:
        """Source of all elements in ``rounds`` rounds of ``turns`` turns each, one row per round."""
        return self._changed(rounds=(rounds, turns))

    def _changed(self, **changes: Any) -> Source:
        given = {"places": self.places, "base": self.base, "rounds": self.rounds, **changes}
        return Source(self.xp, self.key, self.start, self.count, self.device, **given)


def first_accepted(source: Source, propose: Any, rounds: int, turns: int, *parameters: Any) -> Any:
    """First accepted proposal of each element, or the last one if none of ``rounds`` is accepted.

    ``propose`` returns values and whether they are accepted. NumPy proposes again only where needed. The other engines,
    which may be compiling, compute all proposals and select.
    """
    xp = source.xp
    if not xp.HOST:
        values, good = propose(source.stacked(rounds, turns), *parameters)
        chosen = values[rounds - 1]
        for i in range(rounds - 2, -1, -1):
            chosen = xp.where(good[i], values[i], chosen)
        return chosen
    values, good = propose(source, *parameters)
    for i in range(1, rounds):
        left = (~good).nonzero()[0]
        if not left.size:
            break
        values[left], good[left] = propose(source.at(left).later(i * turns), *(p[left] for p in parameters))
    return values


def either(source: Source, condition: Any, yes: Any, no: Any, *parameters: Any) -> Any:
    """``yes(source, ...)`` for elements where the condition holds, ``no(source, ...)`` for the others."""
    xp = source.xp
    if not xp.HOST:
        return xp.where(condition, yes(source, *parameters), no(source, *parameters))
    if condition.all():
        return yes(source, *parameters)
    if not condition.any():
        return no(source, *parameters)
    where_yes, where_no = condition.nonzero()[0], (~condition).nonzero()[0]
    first = yes(source.at(where_yes), *(p[where_yes] for p in parameters))
    second = no(source.at(where_no), *(p[where_no] for p in parameters))
    return xp.merged(condition, first, second)


def horner(x: Any, coefficients: Sequence[float]) -> Any:
    """Polynomial with these coefficients, highest power first."""
    value = x * coefficients[0] + coefficients[1]
    for coefficient in coefficients[2:]:
        value = value * x + coefficient
    return value


def fractions(source: Source, dtype: str) -> Any:
    """Multiples of ``2**-precision`` in [0, 1)."""
    xp = source.xp
    if source.key is None:
        made = xp.native_fractions(source.count, dtype, source.device)
        if made is not None:
            return made
    if dtype == "float64":
        high, low = source.pairs()
        return (xp.cast(high >> 5, dtype) * 2.0**26 + xp.cast(low >> 6, dtype)) * 2.0**-53
    precision = PRECISION[dtype]
    return xp.cast(source.words() >> (32 - precision), dtype) * 2.0**-precision


def positives(source: Source, dtype: str, turn: int | None = None) -> Any:
    """Multiples of ``2**-32`` (``2**-53`` in float64), rounded to the dtype, in (0, 1]."""
    xp = source.xp
    if dtype == "float64":
        high, low = source.pairs(turn)
        return (xp.cast(high >> 5, dtype) * 2.0**26 + (xp.cast(low >> 6, dtype) + 1.0)) * 2.0**-53
    return (xp.cast(source.words(turn), dtype) + 1.0) * 2.0**-32


def centred(source: Source, dtype: str, turn: int | None = None) -> Any:
    """Odd multiples of ``2**-25`` (``2**-54`` in float64) between -1/2 and 1/2."""
    xp = source.xp
    if dtype == "float64":
        high, low = source.pairs(turn)
        # Both terms are exact, and so is their sum: a multiple of 1/2 that is smaller than 2**52.
        whole = (xp.cast(high >> 5, dtype) - 2.0**26) * 2.0**26
        return (whole + (xp.cast(low >> 6, dtype) + 0.5)) * 2.0**-53
    return (xp.cast(source.words(turn) >> 8, dtype) - (2.0**23 - 0.5)) * 2.0**-24


# The logarithm of 2 in two parts: a number with trailing zero bits, whose multiples are exact, and the remainder.
LN2 = {
    "float32": (0.693145751953125, 1.4286068203094172e-06),
    "float64": (0.6931471803691238, 1.9082149292705877e-10),
}
_TERMS = {"float32": 5, "float64": 11}
LAYOUT = {"float32": ("int32", 23, 127), "float64": ("int64", 52, 1023)}


def log(xp: Any, x: Any, dtype: str) -> Any:
    """Natural logarithm of positive, normal numbers."""
    integer, width, bias = LAYOUT[dtype]
    bits = xp.view(x, integer)
    # Mantissa in [sqrt(1/2), sqrt(2)): the sum carries into the exponent for mantissas of at least sqrt(2).
    exponent = (bits + carry(dtype) >> width) - bias
    mantissa = xp.view(bits - (exponent << width), dtype)
    return _log(mantissa - 1.0, xp.cast(exponent, dtype), dtype)


def carry(dtype: str) -> int:
    """Difference between the bits of 2 and those of ``sqrt(2)``."""
    return 0x4AFB0D if dtype == "float32" else 0x95F619980C434


def log_series(dtype: str) -> list[float]:
    """Coefficients of ``log((1 + s) / (1 - s)) / s`` in powers of ``s * s``, highest first."""
    return [2.0 / (2 * k + 1) for k in range(_TERMS[dtype] - 1, -1, -1)]


def _log(t: Any, exponent: Any, dtype: str) -> Any:
    """``log(1 + t) + exponent * log(2)`` for ``t`` in [sqrt(1/2) - 1, sqrt(2) - 1)."""
    s = t / (t + 2.0)
    series = s * horner(s * s, log_series(dtype))
    high, low = LN2[dtype]
    return exponent * high + (series + exponent * low)


# Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988): numerator and denominator of
# the rational functions for the middle, the tails and the far tails, highest power first.
MIDDLE = {
    "float32": (
        (5.9109374720e1, 1.5929113202e2, 5.0434271938e1, 3.3871327179),
        (6.7187563600e1, 7.8757757664e1, 1.7895169469e1, 1.0),
    ),
    "float64": (
        (
            2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4,
            1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080,
        ),
        (
            5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4,
            5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1.0,
        ),
    ),
}  # fmt: skip
TAIL = {
    "float32": (
        (1.7023821103e-1, 1.3067284816, 2.7568153900, 1.4234372777),
        (1.2021132975e-1, 7.3700164250e-1, 1.0),
    ),
    "float64": (
        (
            7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258,
            3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734,
        ),
        (
            1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
            6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1.0,
        ),
    ),
}  # fmt: skip
FAR_TAIL = (
    (
        2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
        2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720,
    ),
    (
        2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
        1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0,
    ),
)  # fmt: skip


def normal_quantile(xp: Any, q: Any, dtype: str) -> Any:
    """Quantile of the standard normal distribution at ``1/2 + q``, for ``q`` between -1/2 and 1/2."""
    near = 0.180625 - q * q
    above, below = MIDDLE[dtype]
    middle = q * (horner(near, above) / horner(near, below))
    size = xp.where(q < 0.0, -q, q)
    r = xp.sqrt(-log(xp, 0.5 - size, dtype))
    above, below = TAIL[dtype]
    tail = horner(r - 1.6, above) / horner(r - 1.6, below)
    if dtype == "float64":
        above, below = FAR_TAIL
        tail = xp.where(r <= 5.0, tail, horner(r - 5.0, above) / horner(r - 5.0, below))
    return xp.where(size <= 0.425, middle, xp.where(q < 0.0, -tail, tail))


def normals(source: Source, dtype: str, turn: int | None = None) -> Any:
    """Standard normal numbers, by inversion."""
    if source.key is None:
        made = source.xp.native_normals(source.count, dtype, source.device)
        if made is not None:
            return made
    return normal_quantile(source.xp, centred(source, dtype, turn), dtype)


def truncated_normals(source: Source, dtype: str, low: float, high: float, first: float, last: float) -> Any:
    """Standard normal numbers in [low, high]; ``first`` and ``last`` are the CDF at these bounds minus 1/2."""
    xp = source.xp
    made = normal_quantile(xp, centred(source, dtype) * (last - first) + (first + last) * 0.5, dtype)
    made = xp.where(made < low, low, made)
    return xp.where(made > high, high, made)


def standard(source: Source, sampler: Any, location: float, scale: float, dtype: str, *parameters: Any) -> Any:
    """Numbers of a standard distribution, moved to a location and scale that are Python numbers."""
    made = sampler(source, dtype, *parameters)
    return made if location == 0 and scale == 1 else placed(made, float(location), float(scale))


def fractions_between(source: Source, dtype: str, wide: str, low: float, high: float, top: float) -> Any:
    """Uniform numbers in [low, high), for bounds that are Python numbers."""
    return between(source.xp, fractions(source, dtype), low, high, top, dtype, wide)


def exponentials(source: Source, dtype: str) -> Any:
    """Standard exponential numbers, by inversion."""
    return -log(source.xp, positives(source, dtype), dtype)


def laplaces(source: Source, dtype: str) -> Any:
    """Standard Laplace numbers: exponential numbers whose sign is the highest bit of a word."""
    xp = source.xp
    if dtype == "float64":
        first, low = source.pairs()
        size = xp.cast((first & 0x7FFFFFFF) >> 5, dtype) * 2.0**26 + (xp.cast(low >> 6, dtype) + 1.0)
        made = log(xp, size * 2.0**-52, dtype)
    else:
        first = source.words()
        made = log(xp, (xp.cast(first & 0x7FFFFFFF, dtype) + 1.0) * 2.0**-31, dtype)
    return xp.where(first > 0x7FFFFFFF, made, -made)


def gumbels(source: Source, dtype: str) -> Any:
    """Standard Gumbel numbers: the negative logarithm of exponential numbers."""
    xp = source.xp
    if dtype == "float64":
        high, low = source.pairs()
        y = (xp.cast(high >> 5, dtype) * 2.0**25 + (xp.cast(low >> 7, dtype) + 0.5)) * 2.0**-52
    else:
        y = (xp.cast(source.words(), dtype) + 0.5) * 2.0**-32
        y = xp.where(y < 1.0, y, 1.0 - 2.0**-24)
    return -log(xp, -log_of_rest(xp, y, dtype), dtype)


def log_of_rest(xp: Any, y: Any, dtype: str) -> Any:
    """``log(1 - y)`` for ``y`` in [0, 1), accurate for small ``y``."""
    small = y < 0.25
    near = _log(xp.where(small, -y, 0.0 * y), 0.0 * y, dtype)
    return xp.where(small, near, log(xp, 1.0 - y, dtype))


def exp(xp: Any, x: Any, dtype: str) -> Any:
    """Exponential of numbers that are not positive; 0 for results below the smallest normal number."""
    integer, width, bias = LAYOUT[dtype]
    least = (2 - bias) * math.log(2)
    bounded = xp.where(x < least, least, x)
    n = xp.floor(bounded * 1.4426950408889634 + 0.5)
    high, low = LN2[dtype]
    r = (bounded - n * high) - n * low
    series = horner(r, [1.0 / math.factorial(k) for k in range(_TERMS[dtype] + 3, -1, -1)])
    power = xp.view((xp.cast(n, integer) + bias) << width, dtype)
    return xp.where(x < least, 0.0 * series, series * power)


# Half the logarithm of 2 pi, and the exact remainder of Stirling's formula for the log-gamma function at 1 to 6, where
# the series is not accurate.
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
_LEFT = [math.lgamma(x) - (x - 0.5) * math.log(x) + x - HALF_LOG_TAU for x in range(1, 7)]


def stirling(xp: Any, x: Any) -> Any:
    """``log((x - 1)!) - ((x - 1/2) log(x) - x + log(2 pi) / 2)`` for integers ``x``."""
    inverse = 1.0 / x
    square = inverse * inverse
    series = inverse * horner(square, (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12))
    for i, left in enumerate(_LEFT, 1):
        series = xp.where(x == i, left + 0.0 * x, series)
    return series


def log_ratio(xp: Any, x: Any, y: Any, difference: Any, dtype: str) -> Any:
    """``log(x / y)`` for positive numbers with ``difference = x - y``, accurate for small differences."""
    t = difference / y
    near = (t < 0.25) & (t > -0.25)
    return xp.where(near, _log(xp.where(near, t, 0.0 * t), 0.0 * t, dtype), log(xp, x / y, dtype))


# Number of proposals per element; the probability that none is accepted is below 1e-10 for each sampler.
_ROUNDS = {"gamma": 8, "poisson": 20, "binomial": 24}


def gamma_parts(source: Source, alpha: Any, dtype: str) -> tuple[Any, Any]:
    """Two tensors whose combination ``first * exp(second)`` is a standard gamma number.

    Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). For ``alpha < 1``, ``alpha + 1`` is
    used and the number is multiplied by a uniform number to the power ``1 / alpha``. That factor may underflow, so its
    logarithm is returned separately.
    """
    xp = source.xp
    small = alpha < 1.0
    d = xp.where(small, alpha + 1.0, alpha) - 1.0 / 3.0
    c = 1.0 / xp.sqrt(d * 9.0)

    def propose(source: Source, d: Any, c: Any) -> tuple[Any, Any]:
        x = normal_quantile(xp, centred(source, dtype, 0), dtype)
        u = positives(source, dtype, 1)
        v = x * c + 1.0
        v = v * v * v
        valid = v > 0.0
        v = xp.where(valid, v, 1.0 + 0.0 * v)
        good = log(xp, u, dtype) < 0.5 * x * x + d - d * v + d * log(xp, v, dtype)
        return d * v, valid & good

    rounds = _ROUNDS["gamma"]
    made = first_accepted(source, propose, rounds, 2, d, c)
    boost = log(xp, positives(source, dtype, 2 * rounds), dtype) / xp.where(small, alpha, 1.0 + 0.0 * alpha)
    return made, xp.where(small, boost, 0.0 * boost)


def gammas(source: Source, alpha: Any, beta: Any, dtype: str) -> Any:
    """Gamma numbers of shape ``alpha`` and rate ``beta``."""
    made, boost = gamma_parts(source, alpha, dtype)
    return made * exp(source.xp, boost, dtype) / beta


def log_gammas(source: Source, alpha: Any, dtype: str) -> Any:
    """Logarithms of standard gamma numbers."""
    made, boost = gamma_parts(source, alpha, dtype)
    return log(source.xp, made, dtype) + boost


def betas(source: Source, a: Any, b: Any, dtype: str) -> Any:
    """Beta numbers: ``x / (x + y)`` for two gamma numbers."""
    xp = source.xp
    first, second = log_gammas(source, a, dtype), log_gammas(source.later(32), b, dtype)
    difference = second - first
    ratio = exp(xp, xp.where(difference < 0.0, difference, -difference), dtype)
    part = 1.0 / (ratio + 1.0)
    return xp.where(difference < 0.0, part, ratio * part)


def dirichlets(source: Source, alpha: Any, size: int, dtype: str) -> Any:
    """Dirichlet numbers: gamma numbers divided by their sum in each group of ``size``."""
    xp = source.xp
    logs = log_gammas(source, alpha, dtype).reshape(-1, size)
    parts = exp(xp, logs - xp.largest(logs), dtype)
    return (parts / xp.cumsum(parts)[:, -1:]).reshape(-1)


_STEPS = 64


def _searched(source: Source, first: Any, factor: Any, dtype: str) -> Any:
    """Inversion by search: the first ``k`` at which the cumulative probability reaches a uniform number.

    Args:
        first: probability of 0.
        factor: function of ``k``, the ratio of the probabilities of ``k`` and ``k - 1``.
    """
    xp = source.xp
    u = positives(source, dtype, 0)
    if not xp.HOST:
        # All k in one column: a loop would give compilers a separate constant for each k.
        k = xp.cast(xp.positions(0, _STEPS, source.device), dtype).reshape(_STEPS, 1)
        likelihoods = xp.cumprod(xp.where(k < 1.0, first, factor(xp.where(k < 1.0, 1.0 + k, k))))
        return xp.cast(u > xp.cumsum(likelihoods, 0), dtype).sum(0)
    likelihood = total = first
    count = 0.0 * u
    for k in range(1, _STEPS + 1):
        beyond = u > total
        if not beyond.any():
            break
        count = count + xp.cast(beyond, dtype)
        likelihood = likelihood * factor(float(k))
        total = total + likelihood
    return count


def poissons(source: Source, rate: Any, dtype: str) -> Any:
    """Poisson numbers: inversion by search for rates below 10, otherwise transformed rejection."""
    xp = source.xp

    def searched(source: Source, rate: Any) -> Any:
        rate = xp.where(rate < 10.0, rate, 1.0 + 0.0 * rate)
        return _searched(source, exp(xp, -rate, dtype), lambda k: rate / k, dtype)

    def rejected(source: Source, rate: Any) -> Any:
        rate = xp.where(rate < 10.0, 10.0 + 0.0 * rate, rate)
        return first_accepted(source, propose, _ROUNDS["poisson"], 2, rate)

    def propose(source: Source, rate: Any) -> tuple[Any, Any]:
        # Hoermann, "The transformed rejection method for generating Poisson random variables" (1993): PTRS.
        b = xp.sqrt(rate) * 2.53 + 0.931
        a = b * 0.02483 - 0.059
        u, v = centred(source, dtype, 0), positives(source, dtype, 1)
        us = 0.5 - xp.where(u < 0.0, -u, u)
        k = xp.floor((a * 2.0 / us + b) * u + rate + 0.43)
        quick = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2.0))
        possible = (k >= 0.0) & ((us >= 0.013) | (v <= us))
        k = xp.where(k < 0.0, 0.0 * k, k)
        # Stirling's formula, arranged to avoid cancellation of large numbers: rates go up to 2**52.
        x = k + 1.0
        above = x - rate
        likely = log(xp, v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b), dtype) <= (
            (above - (x - 0.5) * log_ratio(xp, x, rate, above, dtype))
            - 0.5 * log(xp, rate, dtype)
            - (stirling(xp, x) + HALF_LOG_TAU)
        )
        return k, quick | (possible & likely)

    return either(source, rate < 10.0, searched, rejected, rate)


def binomials(source: Source, n: Any, p: Any, dtype: str) -> Any:
    """Binomial numbers: inversion by search where ``n * min(p, 1 - p) < 10``, otherwise transformed rejection."""
    xp = source.xp
    flipped = p > 0.5
    p = xp.where(flipped, 1.0 - p, p)

    def searched(source: Source, n: Any, p: Any) -> Any:
        few = n * p < 10.0
        n, p = xp.where(few, n, 1.0 + 0.0 * n), xp.where(few, p, 0.5 + 0.0 * p)
        odds = p / (1.0 - p)
        none = exp(xp, n * log_of_rest(xp, p, dtype), dtype)
        return _searched(source, none, lambda k: (n + 1.0) * odds / k - odds, dtype)

    def rejected(source: Source, n: Any, p: Any) -> Any:
        few = n * p < 10.0
        n, p = xp.where(few, 40.0 + 0.0 * n, n), xp.where(few, 0.5 + 0.0 * p, p)
        return first_accepted(source, propose, _ROUNDS["binomial"], 2, n, p)

    def propose(source: Source, n: Any, p: Any) -> tuple[Any, Any]:
        # Hoermann, "The generation of binomial random variates" (1993): BTRS.
        q = 1.0 - p
        spread = xp.sqrt(n * p * q)
        b = spread * 2.53 + 1.15
        a = b * 0.0248 + p * 0.01 - 0.0873
        u, v = centred(source, dtype, 0), positives(source, dtype, 1)
        us = 0.5 - xp.where(u < 0.0, -u, u)
        k = xp.floor((a * 2.0 / us + b) * u + n * p + 0.5)
        quick = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
        possible = (k >= 0.0) & (k <= n)
        mode = xp.floor((n + 1.0) * p)
        k = xp.where(possible, k, mode)
        # Probability relative to the mode, with Stirling's formula for the factorials, arranged to avoid cancellation
        # of large numbers: ``n`` goes up to 2**53.
        above = k - mode
        x, y = mode + 1.0, n - mode + 1.0
        gain = y * p - x * q
        likely = log(xp, v * ((2.83 + 5.1 / b) * spread) / (a / (us * us) + b), dtype) <= (
            (above * log_ratio(xp, y * p, x * q, gain, dtype))
            - (x + above - 0.5) * log_ratio(xp, x + above, x, above, dtype)
            - (y - above - 0.5) * log_ratio(xp, y - above, y, -above, dtype)
            + (stirling(xp, x) + stirling(xp, y) - stirling(xp, x + above) - stirling(xp, y - above))
        )
        return k, quick & possible | (possible & likely)

    made = either(source, n * p < 10.0, searched, rejected, n, p)
    return xp.where(flipped, n - made, made)


def choices(source: Source, weights: Any, dtype: str) -> Any:
    """Column indices drawn for every row of ``weights``, with probabilities proportional to the weights."""
    xp = source.xp
    sums = xp.cumsum(weights)
    rows = weights.shape[0]
    aim = fractions(source, dtype).reshape(rows, source.count // rows if rows else 0) * sums[:, -1:]
    return xp.located(sums, aim).reshape(-1)


def categories(source: Source, logits: Any, size: int, dtype: str) -> Any:
    """Column indices drawn for every row of ``size`` logits, with probabilities ``softmax(logits)``."""
    rows = logits.reshape(-1, size)
    return choices(source, exp(source.xp, rows - source.xp.largest(rows), dtype), dtype)


def ranks(source: Source, weights: Any, dtype: str) -> Any:
    """Indices in the order of weighted drawing without replacement, by the exponential race."""
    xp = source.xp
    size = xp.where(weights > 0.0, weights, 1.0 + 0.0 * weights)
    times = exponentials(source, dtype) / size
    return xp.argsort(xp.where(weights > 0.0, times, math.inf + 0.0 * times))


def placed(values: Any, location: Any, scale: Any) -> Any:
    """``values * scale + location``: numbers of a standard distribution moved to a location and scale."""
    return values * scale + location


def between(xp: Any, values: Any, low: Any, high: Any, top: Any, dtype: str, wide: str) -> Any:
    """Numbers in [0, 1) mapped to [low, high); results that round up to ``high`` become ``top``, its predecessor."""
    mapped = xp.cast(xp.cast(values, wide) * (high - low) + low, dtype)
    return xp.where(mapped < high, mapped, top)


def rounded(value: float, dtype: str) -> float:
    """Python number rounded to the precision of a dtype."""
    if value == 0.0 or dtype == "float64":
        return float(value)
    _, exponent = math.frexp(value)
    unit = max(exponent - PRECISION[dtype], _LEAST[dtype])
    return math.ldexp(round(math.ldexp(value, -unit)), unit)


def hold(dtype: str, *values: float) -> bool:
    """Whether finite Python numbers are in the range of a dtype."""
    return all(math.frexp(rounded(value, dtype))[1] <= _BEYOND[dtype] for value in values)


def before(value: float, dtype: str) -> float:
    """Largest number of a dtype that is smaller than ``value``, which the dtype represents exactly."""
    if value == 0.0:
        return -math.ldexp(1.0, _LEAST[dtype])
    mantissa, exponent = math.frexp(value)
    unit = max(exponent - PRECISION[dtype] - (mantissa == 0.5), _LEAST[dtype])
    return value - math.ldexp(1.0, unit)


# Exponents of the first power of two that overflows, and of the smallest positive number.
_BEYOND = {"bfloat16": 128, "float16": 16, "float32": 128, "float64": 1024}
_LEAST = {"bfloat16": -133, "float16": -24, "float32": -149, "float64": -1074}


def trials(source: Source, p: Any) -> Any:
    """Whether a word, as a fraction of 2**32, is below the probability ``p``."""
    xp = source.xp
    # The product and its integer part are exact in every dtype of sufficient range.
    if isinstance(p, float | int):
        return source.below(int(p * 2.0**32))
    return xp.cast(source.words(), "int64") < xp.cast(xp.floor(xp.single(p) * 2.0**32), "int64")


def integers(source: Source, low: Any, high: Any) -> Any:
    """``low + floor(x * (high - low))`` in int64 with wrap-around, for random ``x`` in [0, 1).

    ``x`` has 64 bits if the span is below 2**32, otherwise 128. The probabilities of any two numbers differ by a
    relative 2**-32 at most.
    """
    xp = source.xp
    first, second = (xp.cast(word, "int64") for word in source.pairs())
    if isinstance(low, int) and isinstance(high, int):
        span = high - low
        low = _signed(low)
        if span < 1 << 32:
            return _scaled_64(first, second, span) + low
        if span == 1 << 64:
            return (first << 32) + second + low
        third, fourth = (xp.cast(word, "int64") for word in source.pairs(0))
        return _scaled_128(first, second, third, fourth, span >> 32, span & MASK) + low
    low, high = (_signed(x) if isinstance(x, int) else xp.cast(x, "int64") for x in (low, high))
    span = high - low
    third, fourth = (xp.cast(word, "int64") for word in source.pairs(0))
    wide = _scaled_128(first, second, third, fourth, _high(span), _low(span))
    return xp.where(_high(span) == 0, _scaled_64(first, second, _low(span)), wide) + low


def _signed(value: int) -> int:
    """Signed 64-bit integer with the same bits."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _scaled_64(high: Any, low: Any, count: Any) -> Any:
    """``floor(x * count / 2**64)`` for ``x`` of two words and ``count`` of one."""
    first, second = high * count, low * count
    return _high(first) + _high(_low(first) + _high(second))


def _scaled_128(a: Any, b: Any, c: Any, d: Any, count_high: Any, count_low: Any) -> Any:
    """``floor(x * count / 2**128)`` for ``x`` of four words, ``a`` the highest, and ``count`` of two."""
    # Columns of a long multiplication of 32-bit words, from the lowest; the products may wrap.
    dl, dh, cl, ch = d * count_low, d * count_high, c * count_low, c * count_high
    bl, bh, al, ah = b * count_low, b * count_high, a * count_low, a * count_high
    column = _high(dl) + _low(dh) + _low(cl)
    column = _high(column) + _high(dh) + _high(cl) + _low(ch) + _low(bl)
    column = _high(column) + _high(ch) + _high(bl) + _low(bh) + _low(al)
    column = _high(column) + _high(bh) + _high(al) + _low(ah)
    return (_high(ah) + _high(column) << 32) + _low(column)


def bits(source: Source, width: int, dtype: str) -> Any:
    """Integers from the highest ``width`` bits of a word, or from two words for 64 bits."""
    xp = source.xp
    if width == 64:
        high, low = (xp.cast(word, "int64") for word in source.pairs())
        return xp.cast((high << 32) + low, dtype)
    return xp.cast(source.words() >> (32 - width), dtype)


def order(source: Source, width: int) -> Any:
    """Indices of the elements in random order, sorted by ``63 - width`` random bits each.

    The index follows the bits in the sort key, so that ties have the same order on every engine.
    """
    xp = source.xp
    high, low = (xp.cast(word, "int64") for word in source.pairs())
    keys = (high << 31) + (low >> 1) >> width << width
    ordered = xp.sort(keys + xp.positions(source.start, source.count, source.device))
    return ordered & ((1 << width) - 1)


def _high(x: Any) -> Any:
    """Upper word of int64, as an unsigned number."""
    return x >> 32 & MASK


def _low(x: Any) -> Any:
    return x & MASK
