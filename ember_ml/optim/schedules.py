"""Schedules: functions from the number of steps so far to the learning rate of the next step.

A schedule can be used as the ``learning_rate`` of an optimizer. It returns a number for a number and a tensor for a
tensor, so that it also works in compiled functions. Any function with this property is a schedule.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias

from ember_ml import ops
from ember_ml.spellings import accept, unknown_name

Schedule: TypeAlias = Callable[[Any], Any]
P = ParamSpec("P")

_numbers = SimpleNamespace(
    cos=math.cos, floor=math.floor, maximum=max, minimum=min, power=pow, where=lambda test, yes, no: yes if test else no
)


class Made:
    """Schedule that records the call that created it, for ``repr`` and pickling."""

    def __init__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], rate: Schedule) -> None:
        self._name, self._args, self._kwargs, self._rate = name, args, kwargs, rate

    def __call__(self, n: Any) -> Any:
        return self._rate(n)

    def __reduce__(self) -> Any:
        return _made_again, (self._name, self._args, self._kwargs)

    def __repr__(self) -> str:
        given = inspect.signature(globals()[self._name]).bind(*self._args, **self._kwargs).arguments
        return f"{self._name}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def _made_again(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return globals()[name](*args, **kwargs)


def _record_call(maker: Callable[P, Schedule]) -> Callable[P, Schedule]:
    @wraps(maker)
    def make(*args: P.args, **kwargs: P.kwargs) -> Schedule:
        return Made(maker.__name__, args, kwargs, maker(*args, **kwargs))

    return accept(make)


@_record_call
def constant(rate: float) -> Schedule:
    """Constant ``rate``.

    >>> constant(0.5)(7)
    0.5
    """
    return lambda step: step * 0.0 + rate


@_record_call
def step(rate: float, every: int, factor: float = 0.1) -> Schedule:
    """``rate``, multiplied by ``factor`` every ``every`` steps.

    >>> [step(1.0, every=2, factor=0.5)(n) for n in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """
    _check_steps("step: every", every)
    return lambda n: rate * _functions(n).power(factor, _functions(n).floor(n / every))


@_record_call
def exponential(rate: float, factor: float) -> Schedule:
    """``rate``, multiplied by ``factor`` at every step.

    >>> [exponential(1.0, 0.5)(n) for n in range(3)]
    [1.0, 0.5, 0.25]
    """
    return lambda n: rate * _functions(n).power(factor, n)


@_record_call
def linear(start: float, end: float, steps: int) -> Schedule:
    """Linear change from ``start`` to ``end`` over ``steps`` steps, then ``end``.

    >>> [linear(0.0, 1.0, 4)(n) for n in range(6)]
    [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    """
    _check_steps("linear: steps", steps)
    return lambda n: start + (end - start) * _share(n, steps)


@_record_call
def cosine(rate: float, steps: int, end: float = 0.0) -> Schedule:
    """Cosine decay from ``rate`` to ``end`` over ``steps`` steps, then ``end``.

    >>> [round(cosine(1.0, 4)(n), 3) for n in range(6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    _check_steps("cosine: steps", steps)
    return lambda n: _wave(n, rate, end, _share(n, steps))


@_record_call
def warm_up(schedule: float | Schedule, steps: int, start: float = 0.0) -> Schedule:
    """Linear warm-up from ``start`` to the first rate of ``schedule`` over ``steps`` steps, then ``schedule``.

    Args:
        schedule: a number or a schedule. Its steps are counted from the end of the warm-up.
        steps: number of steps of the warm-up.
        start: rate of the first step.

    >>> [warm_up(1.0, 4)(n) for n in range(6)]
    [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    """
    after = schedule if callable(schedule) else constant(schedule)
    return joined([linear(start, after(0), steps), after], [steps])


@_record_call
def one_cycle(
    peak: float, steps: int, rise: float = 0.3, start_factor: float = 1 / 25, end_factor: float = 1e-4
) -> Schedule:
    """One-cycle schedule: cosine increase to ``peak`` and cosine decay in ``steps`` steps, then the last rate.

    Args:
        peak: largest rate.
        steps: length of the cycle.
        rise: fraction of the steps in which the rate increases.
        start_factor: the first rate is ``peak * start_factor``.
        end_factor: the last rate is ``peak * start_factor * end_factor``.

    >>> [round(one_cycle(1.0, 11, rise=0.5, start_factor=0.5)(n), 2) for n in (0, 4, 5, 10, 20)]
    [0.5, 0.98, 0.98, 0.0, 0.0]
    """
    _check_steps("one_cycle: steps", steps)
    if not 0 < rise < 1:
        raise ValueError(f"one_cycle: rise must be > 0 and < 1, got {rise}")
    start, last = peak * start_factor, steps - 1
    top = rise * steps - 1
    if top <= 0 or last <= top:
        raise ValueError(f"one_cycle: steps must be enough for a rise over {rise} of them, got {steps}")

    def rate(n: Any) -> Any:
        up = _wave(n, start, peak, _share(n, top))
        down = _wave(n, peak, start * end_factor, _functions(n).minimum((n - top) / (last - top), 1.0))
        return _functions(n).where(n <= top, up, down)

    return rate


@_record_call
def joined(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Schedules in sequence. Each counts its steps from its boundary.

    Args:
        schedules: the schedules.
        boundaries: the first step of every schedule but the first, in increasing order.

    >>> [joined([constant(1.0), linear(1.0, 0.0, 2)], [2])(n) for n in range(5)]
    [1.0, 1.0, 1.0, 0.5, 0.0]
    """
    if len(schedules) != len(boundaries) + 1 or sorted(set(boundaries)) != list(boundaries):
        raise ValueError(
            f"joined: boundaries must increase and be one less than schedules, got {len(boundaries)} for "
            f"{len(schedules)}"
        )

    def rate(n: Any) -> Any:
        found = schedules[0](n)
        for schedule, boundary in zip(schedules[1:], boundaries, strict=True):
            functions = _functions(n)
            # Schedules are not defined for negative steps.
            found = functions.where(n < boundary, found, schedule(functions.maximum(n - boundary, 0)))
        return found

    return rate


def _functions(n: Any) -> Any:
    """Functions for ``n``: those of ``math`` for a number, those of ``ops`` for a tensor."""
    return _numbers if isinstance(n, (int, float)) else ops


def _share(n: Any, steps: float) -> Any:
    return _functions(n).minimum(n / steps, 1.0)


def _wave(n: Any, start: float, end: float, share: Any) -> Any:
    """Half a cosine wave from ``start`` to ``end``, at the fraction ``share`` of its length."""
    return end + (start - end) * (1 + _functions(n).cos(share * math.pi)) / 2


def _check_steps(name: str, steps: int) -> None:
    if not steps >= 1:
        raise ValueError(f"{name} must be >= 1, got {steps}")


if not TYPE_CHECKING:  # hidden from type checkers, which would otherwise accept any name

    def __getattr__(name: str) -> Any:
        known = [key for key, value in globals().items() if hasattr(value, "__wrapped__")]
        raise unknown_name(__name__, name, known)
