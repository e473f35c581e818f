"""Copies of a project, in which tests run without changing it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import NamedTuple

from emberlint.source.modules import module_of
from emberlint.trial.errors import TrialError

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")
_SKIPPED = frozenset({".git", ".hg", ".tox", ".nox", "node_modules", "__pycache__"})


class Project(NamedTuple):
    """A project: its folder, and of the files of the package, their module by their path relative to the folder."""

    root: str
    modules: dict[str, str]

    def relative(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self.root)

    def roots(self) -> list[str]:
        """Folders from which the modules are imported, relative to the project; those of packages, if there are any."""
        found: dict[str, bool] = {}
        for path, module in self.modules.items():
            name = os.path.basename(path)
            levels = module.count(".") + 1 if module and name != "__init__.py" else module.count(".") + 2
            root = path
            for _ in range(levels):
                root = os.path.dirname(root)
            found[root] = found.get(root, False) or "." in module or name == "__init__.py"
        packages = [root for root, is_package in found.items() if is_package]
        return packages or list(found)


def project_of(paths: list[str], files: list[str]) -> Project:
    """Project with the paths that are ported and the current folder; ``files`` are those of the package."""
    here = os.path.realpath(os.getcwd())
    start = os.path.commonpath([here, *(os.path.realpath(path) for path in paths)])
    root = start = start if os.path.isdir(start) else os.path.dirname(start)
    while not any(os.path.exists(os.path.join(root, mark)) for mark in _MARKS):
        above = os.path.dirname(root)
        if above == root:
            root = start
            break
        root = above
    if root in (os.path.realpath(os.path.expanduser("~")), os.path.abspath(os.sep)):
        raise TrialError(f"--check copies the folder of the project, and {root} is not one; run it in the project")
    modules = {os.path.relpath(os.path.realpath(path), root): module_of(os.path.abspath(path))[0] for path in files}
    return Project(root, modules)


def revision(project: Project, name: str, paths: list[str]) -> dict[str, bytes]:
    """Contents that files of a project had in a revision of git; files that it does not have are left out."""
    found = {}
    for path in paths:
        command = ["git", "-C", project.root, "show", f"{name}:./{path}"]
        done = subprocess.run(command, capture_output=True, check=False)
        if not done.returncode:
            found[path] = done.stdout
    if not found:
        raise TrialError(f"--base: git has none of the files in the revision {name!r}")
    return found


def copied(project: Project, folder: str, contents: Mapping[str, bytes]) -> str:
    """Copy of a project in a folder, with other contents of some files; returns the root of the copy."""
    root = os.path.join(folder, os.path.basename(project.root) or "project")
    shutil.copytree(project.root, root, symlinks=True, ignore=_ignored(folder), ignore_dangling_symlinks=True)
    for path, data in contents.items():
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.islink(target):
            os.unlink(target)
        with open(target, "wb") as file:
            file.write(data)
    return root


def _ignored(copies: str) -> Callable[[str, list[str]], set[str]]:
    """What is not copied: repositories, virtual environments, caches, files that are none, and the copies."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name in _SKIPPED or _is_foreign(os.path.join(folder, name), copies)}

    return ignored


def _is_foreign(path: str, copies: str) -> bool:
    if os.path.islink(path):
        return False
    if os.path.isdir(path):
        return os.path.exists(os.path.join(path, "pyvenv.cfg")) or os.path.realpath(path) == os.path.realpath(copies)
    return not os.path.isfile(path)
