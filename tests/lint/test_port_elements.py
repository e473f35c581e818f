"""A port to EmberTensors of code that distinguishes numbers from sequences."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import programs
import pytest

from ember_ml.backend import Backend


def ported(text: str) -> str:
    return programs.ported(text).after.decode()


PROGRAM = """
    from collections.abc import Iterable, Sized

    import numpy as np


    def kinds(x):
        found = []
        for value in [*np.asarray(x), x, "text", 2.0]:
            found.append("many" if isinstance(value, (list, Iterable)) else "one")
            if not isinstance(value, Sized) and not hasattr(value, "__len__"):
                found.append("no length")
        return found
"""


def test_sequence_tests_exclude_elements(backend: Backend) -> None:
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    exec(textwrap.dedent(PROGRAM), before)
    exec(ported(PROGRAM), after)
    for x in ([1.0, 2.0], [[1, 2], [3, 4]]):
        assert after["kinds"](x) == before["kinds"](x)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return isinstance(x, Iterable)\n",
        "import numpy as np\n\ndef f(x):\n    return isinstance(x, list), hasattr(x, '__array__')\n",
        "import numpy as np\n\ndef f(x):\n    return isinstance(g(x), Sized)\n",
        "import numpy as np\n\ndef f():\n    x = 2\n    return hasattr(x, '__len__')\n",
    ],
)
def test_other_tests_stay(text: str) -> None:
    assert text.rpartition("return")[2] in ported(text)


def test_classes_of_numpy_stay_classes(backend: Backend) -> None:
    text = """
        import numpy as np


        def kinds(x, value):
            x = np.asarray(x)
            numbers = isinstance(value, (int, np.int_)) or isinstance(value, np.float64)
            return issubclass(x.dtype.type, np.integer), issubclass(x.dtype.type, np.number), numbers
    """
    after = ported(text)
    assert "isinstance(value, (int, np.int_)) or isinstance(value, np.float64)" in after
    spaces: list[dict[str, Any]] = [{}, {}]
    for source, space in zip((textwrap.dedent(text), after), spaces, strict=True):
        exec(source, space)
    for x, value in (([1, 2], 3), ([1.5], np.float64(2.0)), ([True], "text")):
        assert spaces[1]["kinds"](x, value) == spaces[0]["kinds"](x, value)


def test_copies_have_no_order(backend: Backend) -> None:
    text = """
        import copy

        import numpy as np


        def copies(x, names):
            x = g(np.asarray(x))
            return x.copy("K"), x.copy(order="F"), copy.copy("C"), names.copy()


        def g(x):
            return x
    """
    space: dict[str, Any] = {}
    exec(ported(text), space)
    first, second, third, fourth = space["copies"]([1, 2], {"a": 1})
    assert first.tolist() == second.tolist() == [1, 2]
    assert (third, fourth) == ("C", {"a": 1})
