"""The contract, on every engine of this library: the checks of ``ember_ml.testing``, and that nothing is missing."""

from __future__ import annotations

import inspect

import pytest
from exceptions import EXCEPTIONS

from ember_ml import ops
from ember_ml.backend import Backend
from ember_ml.dispatch import REGISTRY, Operation
from ember_ml.testing.comparison import expect
from ember_ml.testing.contract import *  # noqa: F403 - its tests are collected here
from ember_ml.testing.pairing import full_name, pairs

pytestmark = pytest.mark.contract

every_operation = pytest.mark.parametrize("operation", REGISTRY.values(), ids=full_name)


@pytest.fixture(autouse=True)
def _known_exceptions(request: pytest.FixtureRequest) -> None:
    """Expect a check to fail where the list of exceptions says so, and say so if it does not."""
    if {"operation", "backend"} <= set(request.fixturenames):
        operation, backend = request.getfixturevalue("operation"), request.getfixturevalue("backend")
        reason = EXCEPTIONS.get((request.function.__name__, operation.name, backend.name))
        if reason is not None:
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


@pairs(missing=True)
def test_is_provided(operation: Operation, backend: Backend) -> None:
    expect(backend.provider(operation) in ("own", "defined"))


@every_operation
def test_is_exported(operation: Operation) -> None:
    module = inspect.getmodule(operation.call)
    expect(getattr(ops, operation.name) is REGISTRY[operation.name].call)
    expect(getattr(module, operation.name) is operation.call)


@every_operation
def test_is_documented(operation: Operation) -> None:
    text = inspect.getdoc(operation.call) or ""
    first = text.partition("\n")[0]
    expect(first.endswith("."), "the first line is a sentence")
    expect(">>>" in text, "there is an example")
    expect("Returns:" not in text, "the annotation says what is returned")
