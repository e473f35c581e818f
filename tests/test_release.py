"""A release: one version, and files that name what pyproject.toml says."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from schemas import published_schema

import ember_ml
import emberlint

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SUPPORTED = ["3.11", "3.12", "3.13", "3.14"]


def yaml(path: Path) -> Any:
    return pytest.importorskip("yaml", reason="PyYAML is not installed").safe_load(path.read_text(encoding="utf-8"))


def test_the_version_is_in_one_place() -> None:
    assert ember_ml.__version__ == emberlint.__version__
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "emberlint.__version__"}
    assigned = subprocess.run(
        ["git", "grep", "-lE", r"^__version__ *=", "--", "*.py"], cwd=ROOT, capture_output=True, text=True
    )
    if assigned.returncode == 128:
        pytest.skip("this is not a git repository")
    assert assigned.stdout.split() == ["emberlint/__init__.py"]


def test_the_files_of_a_release_have_the_version() -> None:
    version = re.escape(ember_ml.__version__)
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{version}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE)
    assert yaml(ROOT / "CITATION.cff")["version"] == ember_ml.__version__


def test_the_citation_is_valid() -> None:
    found = yaml(ROOT / "CITATION.cff")
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.validate(found, published_schema("https://citation-file-format.github.io/1.2.0/schema.json"))
    assert found["license"] == PROJECT["project"]["license"]


def test_the_supported_versions_of_python_are_the_same_everywhere() -> None:
    prefix = "Programming Language :: Python :: 3."
    classifiers = [name.rpartition(" ")[2] for name in PROJECT["project"]["classifiers"] if name.startswith(prefix)]
    assert classifiers == SUPPORTED
    assert PROJECT["project"]["requires-python"] == f">={SUPPORTED[0]}"
    assert f"| Python | {', '.join(SUPPORTED)} |" in (ROOT / "docs" / "support.md").read_text(encoding="utf-8")
    matrix = yaml(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert (matrix["python"], matrix["engine"]) == (SUPPORTED, ["numpy", "torch", "mlx", "jax"])
    release = yaml(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["wheels"]["steps"]
    built = next(step["env"]["CIBW_BUILD"] for step in release if "CIBW_BUILD" in step.get("env", {}))
    assert built.split() == [f"cp{version.replace('.', '')}-*" for version in SUPPORTED]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_are_valid_and_pinned(path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    text = path.read_text(encoding="utf-8")
    content = yaml(path)
    content["on"] = content.pop(True)  # YAML 1.1 reads the key on as true
    for job in content["jobs"].values():
        job["runs-on"] = "ubuntu-latest"  # the stored schema lists the runners of an earlier year
    jsonschema.validate(content, published_schema("https://json.schemastore.org/github-workflow.json"))
    used = re.findall(r"uses: (\S+)(?: # (v[\d.]+))?$", text, re.MULTILINE)
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action) and version for action, version in used), used
    assert "secrets." not in text
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = {word for line in re.findall(r"run: make (.*)", text) for word in line.split()}
    assert called <= targets | {"docs"}, "a workflow calls a target that the Makefile does not have"
