# `make demo` and `make test`; `make quick` while you work, `make whole` after a change of backend/jax, `make generate`
# after a change of operations or rules.
# All make .venv first, once, and again when the project file changes.
PYTHON ?= python3
BIN := .venv/bin

# A worker that has no tests left takes over some of the other's.
WORKERS := -n 2 --dist worksteal

# The fast path of dispatch is written twice: these tests run over its extension and over plain Python. Compilers trace
# the plain Python of both, so one run of their check is enough.
BOTH_SPEEDS := $(addprefix tests/test_,contract.py dispatch.py fast.py options.py promotion.py tensor.py)

# The tests of `make quick`: the contract, of which --quick takes a sample, and unit tests; none that compiles or waits.
QUICK := $(addprefix tests/test_,contract.py fast.py options.py promotion.py dtypes.py types.py errors.py tensor.py)

.PHONY: demo test quick whole lint types generate docs mutants bench dist clean

demo: .venv/.installed
	$(BIN)/ember-ml demo

test: lint types
	$(BIN)/python -m pytest $(WORKERS)
	EMBER_ML_PURE_PYTHON=1 $(BIN)/python -m pytest $(WORKERS) $(BOTH_SPEEDS) -k 'not compilers_trace_it'

quick: .venv/.installed
	$(BIN)/python -m pytest $(WORKERS) --quick -k 'not compilers and not leak' $(QUICK) tests/lint/test_rules.py

# All tests of JAX, and all lines at which a signal may come; `make test` runs a sample of both.
whole: .venv/.installed
	$(BIN)/python -m pytest $(WORKERS) --whole -k 'jax or whenever_a_signal_comes'

lint: .venv/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/.installed
	$(BIN)/mypy

# Every generated file. The matrix of ember_ml/tools is measured, not generated: `ember-ml ops measure` writes it.
generate: .venv/.installed
	$(BIN)/python -m ember_ml.reference
	$(BIN)/python -m emberlint.generate
	$(BIN)/python docs/pictures
	EMBERLINT_UPDATE=1 $(BIN)/python -m pytest tests/lint/test_rules.py -k test_bad

# The site of the documentation, for a browser: build/docs/index.html. Fails with a warning or a dead link, or if its
# search, tabs or pages do not work in Chromium.
docs: .venv/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[docs]'
	PYTHONPATH=docs $(BIN)/python -m _site build/docs
	$(BIN)/python -m pytest --site build/docs tests/test_site.py

mutants: .venv/.installed
	$(BIN)/python tests/mutants.py

bench: .venv/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[bench]'
	for name in dispatch ops tensor randomness features training lint; do $(BIN)/python benchmarks/$$name.py; done

# The source distribution, and of it a wheel for every platform and one with the extension for this one; each is
# installed into an empty environment, where the quick start runs.
dist: .venv/.installed
	rm -rf dist
	$(BIN)/pip install --quiet build
	$(BIN)/python -m build --sdist
	EMBER_ML_PURE_WHEEL=1 $(BIN)/pip wheel --quiet --no-deps --wheel-dir dist dist/*.tar.gz
	$(BIN)/pip wheel --quiet --no-deps --no-cache-dir --wheel-dir dist dist/*.tar.gz
	$(BIN)/python tests/check_distributions.py dist

.venv/.installed: pyproject.toml constraints.txt
	@echo "Making the virtual environment .venv."
	$(PYTHON) -m venv .venv
	@echo "Installing Ember ML, its engines and the tools of its tests into .venv; this takes a minute or more."
	$(BIN)/pip install --progress-bar off --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
