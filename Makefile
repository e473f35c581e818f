# Two commands: `make demo` and `make test`. Both make .venv first, once, and again when the project file changes.
PYTHON ?= python3
BIN := .venv/bin

# The fast path of dispatch is written twice: these tests run over its extension and over plain Python.
BOTH_SPEEDS := $(addprefix tests/test_,contract.py dispatch.py fast.py options.py promotion.py tensor.py)

.PHONY: demo test lint types mutants bench clean

demo: .venv/.installed
	$(BIN)/ember-ml demo

test: lint types
	$(BIN)/python -m pytest -n 2
	EMBER_ML_PURE_PYTHON=1 $(BIN)/python -m pytest -n 2 $(BOTH_SPEEDS)

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed
	$(BIN)/mypy

mutants: .venv/.installed
	$(BIN)/python tests/mutants.py

bench: .venv/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	for name in dispatch ops tensor randomness features training lint; do $(BIN)/python benchmarks/$$name.py; done

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
