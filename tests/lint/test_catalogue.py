"""The catalogue agrees with ember and the installed engines; ``make generate`` writes it."""

from __future__ import annotations

import json
from pathlib import Path

from emberlint import generate
from emberlint.inference.values import SCALARS
from emberlint.knowledge import catalogue
from emberlint.knowledge.returns import result_of
from emberlint.knowledge.types import DTYPE, HOST, SEQUENCE, SHAPE, STRING, TENSOR
from emberlint.rewrite.names import DIFFERENT, RENAMED, local_name


def test_it_is_rendered_as_the_file_holds_it() -> None:
    text = Path(generate.PATH).read_text(encoding="utf-8")
    assert generate.render(json.loads(text)) == text


def test_renamed_functions_exist() -> None:
    for engine, table in RENAMED.items():
        for name, operation in table.items():
            assert any(local_name(path, engine) == name for path in catalogue.load()["engines"][engine]["functions"])
            assert catalogue.operation(operation) is not None, operation


def test_functions_with_another_meaning_exist() -> None:
    for engine, names in DIFFERENT.items():
        for name in names:
            last = name.rpartition(".")[2] if name.startswith("nn.") else name
            assert catalogue.operation(last) is not None, f"{engine}: no operation is named {name}"


def test_every_result_type_is_known() -> None:
    words = {*SCALARS, TENSOR, HOST, SHAPE, SEQUENCE, STRING, DTYPE}
    for engine in generate.NAMESPACES:
        for path in catalogue.load()["engines"][engine]["functions"]:
            found = result_of(path)
            assert found is None or found[0] in words, path
    for name in catalogue.load()["ember"]["names"]:
        found = result_of(f"ember_ml.ops.{name}")
        assert found is None or found[0] in words, name


def test_the_longest_of_several_documented_calls_is_listed() -> None:
    rows = catalogue.parameters(catalogue.function("torch.sum") or {}) or []
    assert [(row.name, row.default) for row in rows] == [
        ("input", None),
        ("dim", "None"),
        ("keepdim", "False"),
        ("dtype", "None"),
    ]


def test_documented_signatures_are_split_at_commas_outside_brackets() -> None:
    assert generate.documented_parameters("input, dim=(0, 1), sizes: dict[str, int] = {}, *, out=None") == [
        ["input", "B", None],
        ["dim", "B", "(0, 1)"],
        ["sizes", "B", "{}"],
        ["out", "K", "None"],
    ]
