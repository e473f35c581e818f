"""Precision and recall of type inference, measured on labelled sites of real packages.

    pip download --no-deps --dest wheels numpy-financial==1.0.0 transforms3d==0.4.2 scikit-fuzzy==0.5.0
    for wheel in wheels/*.whl; do unzip -q "$wheel" -d packages; done
    EMBERLINT_PACKAGES=packages python tests/lint/precision.py

``labels/sites.csv`` holds the sites: 170 of each package, drawn at random (seeded by name and version) from all
operands of operators, comparisons and conditions, arguments, receivers, and expressions that are iterated over,
indexed, assigned into or returned, outside of tests. ``label`` is the type of the site's value: ``tensor`` (an array,
or a NumPy scalar computed from one), ``other``, or ``either`` (an array in some calls and a number, list or None in
others, such as a parameter without a fixed type). ``how`` is ``run`` if the package's own tests and doctests execute
the site; the label is then the recorded type. Otherwise it is ``read``: the label is based on the code and its
documentation. NumPy scalars that are constants (``np.finfo(...).eps``) are ``other``.

A prediction of ``tensor`` for a tensor is a hit, for another value a false alarm. A tensor that the linter does not
infer as one is a miss. Sites with the label ``either`` do not count. Half of the sites, chosen by a digest of their
location, are held out from tuning.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import os
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from emberlint.config import Config
from emberlint.inference import traversal
from emberlint.inference.state import State
from emberlint.source.text import Source

TABLE = Path(__file__).parent / "labels" / "sites.csv"
LABELS = ("tensor", "other", "either")


class Site(NamedTuple):
    """An expression of a package: its location, a digest of its text, and its label."""

    package: str
    version: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    role: str
    digest: str
    label: str
    how: str

    @property
    def span(self) -> tuple[int, int, int, int]:
        return self.line, self.column, self.end_line, self.end_column

    @property
    def held(self) -> bool:
        """Whether the site belongs to the half that is held out."""
        place = ":".join(map(str, (self.package, self.file, *self.span)))
        return int(hashlib.sha256(place.encode()).hexdigest(), 16) % 2 == 1


def sites() -> list[Site]:
    """All labelled sites."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {"line", "column", "end_line", "end_column"}
    return [Site(**{key: int(text) if key in numbers else text for key, text in row.items()}) for row in rows]


def path_of(site: Site) -> Path | None:
    """File of a site, if the package is unpacked or installed."""
    folder = os.environ.get("EMBERLINT_PACKAGES")
    if folder and (Path(folder) / site.file).is_file():
        return Path(folder) / site.file
    spec = find_spec(site.file.partition("/")[0])
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]).parent / site.file
    return path if path.is_file() else None


def available() -> list[Site]:
    """Sites whose file is available with the text that was labelled."""
    texts: dict[Path, list[bytes]] = {}
    found = []
    for site in sites():
        path = path_of(site)
        if path is None:
            continue
        if path not in texts:
            texts[path] = path.read_bytes().splitlines(keepends=True)
        if hashlib.sha256(_segment(texts[path], site)).hexdigest()[:8] == site.digest:
            found.append(site)
    return found


def _segment(lines: list[bytes], site: Site) -> bytes:
    part = lines[site.line - 1 : site.end_line]
    if not part:
        return b""
    part[-1] = part[-1][: site.end_column]
    part[0] = part[0][site.column :]
    return b"".join(part)


def measured(some: list[Site]) -> Counter[str]:
    """Number of hits, false alarms, misses and correct rejections."""
    known: dict[Path, dict[tuple[int, int, int, int], bool]] = {}
    count: Counter[str] = Counter()
    for site in some:
        path = path_of(site)
        assert path is not None
        if path not in known:
            known[path] = _arrays(path)
        predicted = known[path][site.span]
        if site.label == "either":
            count["either"] += 1
        elif site.label == "tensor":
            count["hit" if predicted else "miss"] += 1
        else:
            count["false alarm" if predicted else "correct rejection"] += 1
    return count


def _arrays(path: Path) -> dict[tuple[int, int, int, int], bool]:
    source = Source(path.read_bytes(), str(path))
    tree = ast.parse(source.data)
    file = State(source, tree, Config(root=str(path.parent)), thorough=True)
    traversal.run(file)
    found = dict.fromkeys((_span(node) for node in ast.walk(tree) if isinstance(node, ast.expr)), False)
    for node, value in file.known.items():
        found[_span(node)] = value.is_array
    return found


def _span(node: ast.AST) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0  # type: ignore[attr-defined]


def precision(count: Counter[str]) -> float:
    """Fraction of predicted tensors that are tensors."""
    return count["hit"] / (count["hit"] + count["false alarm"])


def recall(count: Counter[str]) -> float:
    """Fraction of tensors that are predicted."""
    return count["hit"] / (count["hit"] + count["miss"])


def main() -> int:
    some = available()
    for name, half in (("tuning", False), ("held out", True)):
        for package in [*dict.fromkeys(site.package for site in some), None]:
            chosen = [site for site in some if site.held == half and package in (site.package, None)]
            count = measured(chosen)
            print(
                f"{name:9}  {package or 'all':15}  {len(chosen):3} sites  precision {precision(count):6.1%}  "
                f"recall {recall(count):6.1%}  {dict(count)}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
