"""The project itself has no findings, with the settings in ``pyproject.toml`` and no baseline."""

from __future__ import annotations

from pathlib import Path

import pytest

from emberlint import config as configuration
from emberlint.lint import runner
from emberlint.report import formats

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("package", ["ember_ml", "emberlint"])
def test_no_findings(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    configuration.load.cache_clear()
    config = configuration.load(".")
    assert config.baseline == ""
    run = runner.run([package], config, cached=False)
    assert len(run.files) > 20
    assert formats.rendered(run.findings, "concise") == ""


def test_the_frontend_imports_no_engine_whatever_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings cannot relax this rule: importing the frontend loads no engine."""
    monkeypatch.chdir(ROOT)
    config = configuration.Config(root=str(ROOT), select=("EMB101", "EMB109", "EMB112", "EMB114"))
    for folder in (
        "ember_ml/ops",
        "ember_ml/nn",
        "ember_ml/backend/numpy",
        "ember_ml/backend/torch",
        "ember_ml/backend/mlx",
        "ember_ml/backend/jax",
    ):
        run = runner.run([folder], config, cached=False)
        assert run.files
        assert formats.rendered(run.findings, "concise") == ""
