"""Fixes: overlapping edits wait, equal insertions are made once, other bytes do not change."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from emberlint.config import Config
from emberlint.findings import SAFE, Edit, Finding, Fix
from emberlint.lint import fixes
from emberlint.source.files import write
from emberlint.source.text import Source


def finding(*edits: Edit) -> Finding:
    return Finding("EMB102", "message", "<string>", 1, 0, 1, 1, Fix(edits, SAFE, "title"))


def test_overlapping_edits_wait() -> None:
    source = Source(b"abc + def\n")
    one, two, three = finding(Edit(0, 3, "x")), finding(Edit(2, 5, "y")), finding(Edit(6, 9, "z"))
    after, done = fixes.applied(source, [one, two, three])
    assert after == b"x + z\n"
    assert done == [one, three]


def test_equal_insertions_are_made_once() -> None:
    source = Source(b"f()\ng()\n")
    place = Edit(0, 0, "import math\n")
    after, done = fixes.applied(source, [finding(place, Edit(0, 1, "p")), finding(place, Edit(4, 5, "q"))])
    assert after == b"import math\np()\nq()\n"
    assert len(done) == 2


def test_a_fix_that_breaks_the_parse_is_dropped() -> None:
    source = Source(b"a = 1\nb = 2\n")
    bad, good = finding(Edit(2, 3, "(")), finding(Edit(10, 11, "3"))
    after, done = fixes.applied(source, [bad, good])
    assert after == b"a = 1\nb = 3\n"
    assert done == [good]


UNUSED = Config(select=("EMB103", "EMB104", "EMB101"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"import numpy as np\nx = np.pi\n", b"from ember_ml import ops\nx = ops.pi\n"),
        (b"import numpy as np\r\nx = np.pi\r\n", b"from ember_ml import ops\r\nx = ops.pi\r\n"),
        (b"\xef\xbb\xbfimport numpy as np\nx = np.pi\n", b"\xef\xbb\xbffrom ember_ml import ops\nx = ops.pi\n"),
        (b"import numpy as np\nx = np.pi", b"from ember_ml import ops\nx = ops.pi"),
        (
            b"# -*- coding: latin-1 -*-\nimport numpy as np\nx = '\xe9', np.pi\n",
            b"# -*- coding: latin-1 -*-\nfrom ember_ml import ops\nx = '\xe9', ops.pi\n",
        ),
        ("import numpy as np\nx = 'é', np.pi\n".encode(), "from ember_ml import ops\nx = 'é', ops.pi\n".encode()),
        (
            b"import numpy as np\n\nops = 3\nx = np.pi\n",
            b"from ember_ml import ops as ember_ops\n\nops = 3\nx = ember_ops.pi\n",
        ),
        (b'"""Page."""\nfrom numpy import pi\nx = pi\n', b'"""Page."""\nfrom ember_ml import ops\nx = ops.pi\n'),
        (b"import numpy as np\nx = int(np.prod((2, 3)))\n", b"import math\nx = int(math.prod((2, 3)))\n"),
        (b"if x:\n    import numpy as np\n", b"if x:\n    import numpy as np\n"),
        (b"import numpy as np; x = 1\n", b"import numpy as np; x = 1\n"),
        (b"import ml_dtypes\nx = 'bfloat16'\n", b"import ml_dtypes\nx = 'bfloat16'\n"),
        (
            b"import numpy as np\ntau = np.pi\nx = 2 * tau\n",
            b"from ember_ml import ops\ntau = ops.pi\nx = 2 * tau\n",
        ),
        (b"import numpy as np\n__all__ = ['np']\n", b"import numpy as np\n__all__ = ['np']\n"),
        (
            b"try:\n    import numpy as np\nexcept ImportError:\n    pass\n",
            b"try:\n    import numpy as np\nexcept ImportError:\n    pass\n",
        ),
    ],
)
def test_whole_files(before: bytes, after: bytes) -> None:
    done = fixes.fixed(before, "module.py", UNUSED)
    assert done.data == after
    assert fixes.fixed(done.data, "module.py", UNUSED).data == after


def test_unsafe_fixes_are_applied_on_request() -> None:
    before = b"import numpy as np\n\n\ndef f(x):\n    return np.expand_dims(np.exp(x), 1)\n"
    config = Config(select=("EMB101", "EMB102"), matrix="")
    after = b"from ember_ml import ops\n\n\ndef f(x):\n    return ops.expand_dims(ops.exp(x), 1)\n"
    assert fixes.fixed(before, "module.py", config, unsafe=True).data == after


def test_writing_keeps_mode_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "a.py", tmp_path / "b.py"
    path.write_bytes(b"x = 1\n")
    path.chmod(0o750)
    link.symlink_to(path)
    write(str(link), b"x = 2\n")
    assert link.is_symlink()
    assert path.read_bytes() == b"x = 2\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert sorted(os.listdir(tmp_path)) == ["a.py", "b.py"]


def test_the_measured_matrix_makes_a_fix_safe(tmp_path: Path) -> None:
    import json

    measured = {
        "op": "exp",
        "same": False,
        "arrays": True,
        "mixed": True,
        "python": False,
        "errors": True,
        "parameters": ["x"],
    }
    matrix = {
        "format": 1,
        "versions": {},
        "operations": {},
        "native": {"numpy": {"numpy.exp": {**measured, "keywords": {}}}},
    }
    (tmp_path / "matrix.json").write_text(json.dumps(matrix))
    config = Config(root=str(tmp_path), select=("EMB102",), matrix="matrix.json")
    known = b"import numpy as np\nx = np.zeros(3)\ny = np.exp(x)\n"
    assert b"ops.exp(x)" in fixes.fixed(known, "m.py", config).data
    assert b"np.zeros(3)" in fixes.fixed(known, "m.py", config).data
    unknown = b"import numpy as np\n\n\ndef f(x):\n    return np.exp(x)\n"
    assert fixes.fixed(unknown, "m.py", config).data == unknown
