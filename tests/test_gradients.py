"""Gradients of every operation on every engine: the checks of ``ember_ml.testing``, and that no rule is without use."""

from __future__ import annotations

import pytest

from ember_ml import gradients
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.testing.gradients import *  # noqa: F403 - its tests are collected here
from ember_ml.testing.pairing import full_name


@pytest.mark.parametrize("operation", REGISTRY.values(), ids=full_name)
def test_rules_are_for_what_has_a_gradient(operation: Operation) -> None:
    assert operation.differentiable or gradients.rule_of(operation) is None
