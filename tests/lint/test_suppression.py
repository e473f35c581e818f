"""Comments that silence findings."""

from __future__ import annotations

import pytest

from emberlint import engine
from emberlint.config import Config

CONFIG = Config(select=("EMB0", "EMB101"))


def codes(text: str, config: Config = CONFIG) -> list[str]:
    return [finding.code for finding in engine.lint(text.encode(), "m.py", config).findings]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import numpy\n", ["EMB101"]),
        ("import numpy  # noqa\n", []),
        ("import numpy  # NOQA : EMB101\n", []),
        ("import numpy  # noqa: F401,EMB101\n", []),
        ("import numpy  # noqa: F401\n", ["EMB101"]),
        ("import numpy  # emberlint: ignore[EMB101] the reference\n", []),
        ("import numpy  # emberlint: ignore[EMB102]\n", ["EMB101"]),
        ("from numpy import (  # noqa: EMB101\n    pi,\n)\n", ["EMB101", "EMB002"]),
        ("from numpy import (\n    pi,  # noqa: EMB101\n)\n", []),
        ("x = '# noqa: EMB101'\nimport numpy\n", ["EMB101"]),
        ("x = '''\n# noqa: EMB101\n'''\n", []),
        ("import numpy  # noqa: EMB999\n", ["EMB101", "EMB003"]),
        ("x = 1  # noqa: EMB101\n", ["EMB002"]),
        ("x = 1  # noqa\n", []),
        ("x = 1  # noqa: EMB203\n", []),
        ("x = (  # noqa: EMB001\n", ["EMB001"]),
    ],
)
def test_comments(text: str, expected: list[str]) -> None:
    assert sorted(codes(text)) == sorted(expected)


def test_per_file_ignores() -> None:
    config = CONFIG._replace(per_file_ignores=(("tests/**", ("EMB1",)), ("m.py", ("EMB101",))))
    assert codes("import numpy\n", config) == []
    assert codes("import numpy\n", CONFIG._replace(per_file_ignores=(("other/*", ("EMB1",)),))) == ["EMB101"]
