"""What pytest loads at its start, by an entry point: it loads the plugin of ``ember_ml.testing`` if that is to be run.

So the options of the plugin do not meet those that other test suites define under the same names. This is a module of
its own, as Hypothesis has one, since importing it must not import ``ember_ml``.
"""

from __future__ import annotations

from typing import Any


def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> None:
    """Load the plugin of the kit if ``ember_ml.testing`` is among what is to be collected."""
    if early_config.known_args_namespace.pyargs and any(arg.startswith("ember_ml.testing") for arg in args):
        early_config.pluginmanager.import_plugin("ember_ml.testing.plugin")
