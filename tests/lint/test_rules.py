"""Every rule: its page, its fixtures, the exact text of its findings, and its fixes.

The rules themselves are the list. ``fixtures/<code>/`` holds ``bad*.py`` and ``good*.py``, or folders ``bad`` and
``good`` for rules about several files; ``bad.txt`` is the exact output for what is bad (``EMBERLINT_UPDATE=1`` writes
it). A ``pyproject.toml`` there configures the run.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

from emberlint import config as configuration
from emberlint import rules
from emberlint.codes import rule_modules
from emberlint.config import ENGINES, Config
from emberlint.findings import Finding
from emberlint.knowledge import catalogue
from emberlint.lint import fixes, linter, runner
from emberlint.report import formats
from emberlint.rules import availability
from emberlint.source.modules import module_of

FIXTURES = Path(__file__).parent / "fixtures"
HEADINGS = ["What it does", "Why", "Example", "Use instead", "Fix safety"]

every_rule = pytest.mark.parametrize("code", list(rule_modules()))


def config_of(code: str) -> Config:
    folder = FIXTURES / code
    if (folder / "pyproject.toml").is_file():
        return configuration.load(str(folder))
    return Config(root=str(folder), select=(code,))


def paths_of(code: str, word: str) -> list[Path]:
    folder = FIXTURES / code
    return [folder / word] if (folder / word).is_dir() else sorted(folder.glob(f"{word}*.py"))


def findings_of(code: str, word: str, monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    paths = paths_of(code, word)
    assert paths, f"{code} has no {word} fixture"
    monkeypatch.chdir(FIXTURES / code)
    names = [str(path.relative_to(FIXTURES / code)) for path in paths]
    return runner.run(names, config_of(code), jobs=1, cached=False).findings


@every_rule
def test_page(code: str) -> None:
    rule = rules.load(code)
    assert re.findall(r"^## (.+)$", rule.page, re.MULTILINE) == HEADINGS
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert rule.fix in ("", "safe", "unsafe", "sometimes")
    title = rule.page.strip().partition("\n")[0]
    assert title.endswith(".")


@every_rule
def test_bad(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = findings_of(code, "bad", monkeypatch)
    mine = [finding for finding in found if finding.code == code]
    assert mine, "nothing is reported"
    text = formats.rendered(mine, "full")
    snapshot = FIXTURES / code / "bad.txt"
    if os.environ.get("EMBERLINT_UPDATE"):
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")
    for finding in mine:
        assert not finding.message.endswith(".")
        assert "\n" not in finding.message


@every_rule
def test_good(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [finding for finding in findings_of(code, "good", monkeypatch) if finding.code == code] == []


@every_rule
def test_fix(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fixes resolve a finding, the file parses afterwards, and applying them again changes nothing."""
    rule = rules.load(code)
    found = [finding for finding in findings_of(code, "bad", monkeypatch) if finding.code == code]
    safeties = {finding.fix.safety for finding in found if finding.fix is not None} - {"suggestion"}
    if code == "EMB004":
        return  # its fix changes the baseline file, not the source
    expected = {"": set(), "safe": {"safe"}, "unsafe": {"unsafe"}}.get(rule.fix)
    assert safeties == expected if expected is not None else safeties
    config = config_of(code)
    for path in {finding.path for finding in found if finding.fix is not None}:
        module, package = module_of(path)
        data = Path(path).read_bytes()
        once = fixes.fixed(data, path, config, unsafe=True, module=module, package=package)
        if {f.fix.safety for f in found if f.path == path and f.fix is not None} != {"suggestion"}:
            assert once.data != data
        compile(once.data, path, "exec", dont_inherit=True)
        twice = fixes.fixed(once.data, path, config, unsafe=True, module=module, package=package)
        assert twice.data == once.data


@pytest.mark.parametrize(("call", "concerned"), [("roll(x, 1, axis=())", True), ("roll(x, 1, axis=0)", False)])
@pytest.mark.parametrize("by_keyword", [True, False])
def test_a_measured_difference_applies_to_positional_and_keyword_arguments(
    call: str, concerned: bool, by_keyword: bool
) -> None:
    keyword = ast.parse(call, mode="eval").body.keywords[0]  # type: ignore[attr-defined]
    entry = {"differences": [{"input": "roll(x, 2, axis=3)"}, {"input": "roll(x, 2, axis=())"}]}
    found = availability.concerned("axis", keyword if by_keyword else keyword.value, entry)
    assert found == (" (`roll(x, 2, axis=())`)" if concerned else None)
    assert availability.concerned("axis", keyword, {}) == ""


JAX_CODE = b"""
import jax
from ember_ml import ops
from ember_ml.types import Tensor


def f(x: Tensor, y: jax.Array) -> Tensor:
    return ops.sort(ops.exp(x), axis=0), x.reshape(-1), y.item(), ops.zeros(3, dtype="float64", device="cpu")
"""


@pytest.mark.parametrize("target", ENGINES)
def test_a_target_that_was_not_measured_is_not_reported(target: str) -> None:
    """The matrix, and the catalogue of methods, may not have a target."""
    config = Config(select=("EMB3", "EMB4"), ignore=("EMB313",), targets=(target,))
    found = linter.lint(JAX_CODE, "model.py", config).findings
    assert [finding for finding in found if target in finding.message.split() or finding.code[:4] == "EMB4"] == []


def test_the_targets_are_the_engines_of_ember() -> None:
    from ember_ml import backend

    assert set(Config().targets) == set(backend.OWN) == set(catalogue.engines())
    jax = b"import jax\n\ndef f(x: jax.Array):\n    return x.at[0].set(1)\n"
    for targets, expected in ((("jax",), 0), (("jax", "mlx"), 0), (("jax", "torch"), 1)):
        found = linter.lint(jax, "model.py", Config(select=("EMB315",), targets=targets)).findings
        assert len(found) == expected, targets


def test_a_module_next_to_a_backend_may_have_the_name_of_an_engine() -> None:
    config = Config(select=("EMB112",))
    for text, expected in ((b"from .torch import f\n", 0), (b"from torch import f\n", 1)):
        assert len(linter.lint(text, "shop/backend/mlx/m.py", config).findings) == expected, text
