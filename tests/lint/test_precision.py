"""The labelled sites are valid, and inference is as precise as documented where the packages are available."""

from __future__ import annotations

from collections import Counter

import precision
import pytest


def test_labels_are_valid() -> None:
    sites = precision.sites()
    assert len({(site.package, site.file, site.span) for site in sites}) == len(sites)
    assert {site.label for site in sites} == set(precision.LABELS)
    assert {site.how for site in sites} == {"run", "read"}
    decided = Counter(site.package for site in sites if site.label != "either")
    assert len(decided) == 3
    assert decided.total() >= 400
    for site in sites:
        assert (site.line, site.column) < (site.end_line, site.end_column)


def test_half_is_held_out() -> None:
    sites = precision.sites()
    held = sum(site.held for site in sites)
    assert 0.4 < held / len(sites) < 0.6


@pytest.mark.parametrize("package", ["numpy-financial", "transforms3d", "scikit-fuzzy"])
def test_inference(package: str) -> None:
    some = [site for site in precision.available() if site.package == package]
    expected = sum(site.package == package for site in precision.sites())
    if len(some) < expected:
        pytest.skip(
            f"{package} is not at hand in the version that was labelled; EMBERLINT_PACKAGES names a folder with it"
        )
    count = precision.measured(some)
    assert precision.precision(count) >= 0.95, count
    assert precision.recall(count) >= 0.8, count
