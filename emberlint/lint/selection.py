"""The checks that a configuration selects for a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from emberlint import rules
from emberlint.codes import chosen_codes
from emberlint.config import Config
from emberlint.inference.checks import Checks, Subscription


def checks_for(codes: tuple[str, ...], where: str, frontend: bool = True) -> Checks:
    """The checks of the selected rules that are about a file, by its path; a frontend, or a file that has engines."""
    return _checks(codes, _others(codes, where), frontend)


def about(codes: tuple[str, ...], where: str) -> list[str]:
    """Those of some rules that are about a file, by its path."""
    others = _others(codes, where)
    return [code for code in codes if code not in others]


def _others(codes: tuple[str, ...], where: str) -> tuple[str, ...]:
    return tuple([code for code, files in _particular(codes) if not files(where)])


@cache
def _particular(codes: tuple[str, ...]) -> list[tuple[str, Callable[[str], bool]]]:
    return [(rule.code, rule.files) for rule in map(rules.load, codes) if rule.files is not None]


@cache
def _checks(codes: tuple[str, ...], others: tuple[str, ...], frontend: bool) -> Checks:
    return Checks(subscriptions((code for code in codes if code not in others), frontend))


def subscriptions(codes: Iterable[str], frontend: bool = True) -> Iterator[Subscription]:
    """What the selected rules subscribe to."""
    for rule in map(rules.load, codes):
        if frontend or rule.everywhere:
            yield from rule.checks


@cache
def selected(config: Config) -> tuple[str, ...]:
    """The codes that run under a configuration."""
    return tuple(chosen_codes(config.select, config.ignore))
