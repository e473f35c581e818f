"""Checks that a configuration selects for a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from emberlint import rules
from emberlint.codes import chosen_codes
from emberlint.config import EMBER_TENSORS, Config
from emberlint.inference.checks import Checks, Subscription


def checks_for(codes: tuple[str, ...], where: str, frontend: bool = True) -> Checks:
    """Checks of the selected rules that apply to a file, by its path; ``frontend`` is false in a layer with engines."""
    return _checks(codes, _excluded(codes, where), frontend)


def about(codes: tuple[str, ...], where: str) -> list[str]:
    """Codes of the rules that apply to a file, by its path."""
    excluded = _excluded(codes, where)
    return [code for code in codes if code not in excluded]


def _excluded(codes: tuple[str, ...], where: str) -> tuple[str, ...]:
    return tuple([code for code, files in _with_files(codes) if not files(where)])


@cache
def _with_files(codes: tuple[str, ...]) -> list[tuple[str, Callable[[str], bool]]]:
    return [(rule.code, rule.files) for rule in map(rules.load, codes) if rule.files is not None]


@cache
def _checks(codes: tuple[str, ...], excluded: tuple[str, ...], frontend: bool) -> Checks:
    return Checks(subscriptions((code for code in codes if code not in excluded), frontend))


def subscriptions(codes: Iterable[str], frontend: bool = True) -> Iterator[Subscription]:
    """Subscriptions of the selected rules."""
    for rule in map(rules.load, codes):
        if frontend or rule.everywhere:
            yield from rule.checks


# Rules about what native tensors do, each engine's in its own way: assignment, masks and negative steps.
_ABOUT_NATIVE = ("EMB301", "EMB302", "EMB305", "EMB306")


@cache
def selected(config: Config) -> tuple[str, ...]:
    """Codes that a configuration selects; none about native tensors if the project's are EmberTensors."""
    ignored = _ABOUT_NATIVE if config.namespace == EMBER_TENSORS else ()
    return tuple(chosen_codes(config.select, (*config.ignore, *ignored)))
