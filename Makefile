# Two commands set everything up: `make quickstart` and `make test`. Both make .venv on a fresh machine.
PYTHON ?= python3
BIN := .venv/bin
# as a user's machine has it: compiled modules are kept, since each process would compile the engine again, and outputs
# are written in blocks
unexport PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED
# a process a core and one more, since some tests wait; a file's tests stay in one process, which holds what they look at
PYTEST := $(BIN)/pytest -n $(shell expr `getconf _NPROCESSORS_ONLN` + 1) --dist loadfile --no-loadscope-reorder

.PHONY: quickstart test test-all test-loaders check format clean

.venv/installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/installed-test: .venv/installed
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	touch $@

quickstart: .venv/installed  ## build a small release from drawn sources, and audit it
	$(BIN)/mmlongbench build manifests/quickstart.yaml --out quickstart
	$(BIN)/mmlongbench audit quickstart

test: check  ## lint, types, and all tests but the slow and rare ones; minutes
	$(PYTEST) -m "not rare"

test-all: test  ## also what is slow and rare: fuzzing, browsers, Ray, every kill, every page, hostile files
	$(PYTEST) -m rare

test-loaders: .venv/installed-test  ## exports of the quickstart, read back by the tools they are for; each in an environment of its own
	test -e quickstart/build.lock.json || $(MAKE) quickstart
	$(BIN)/python tests/loaders/run.py

check: .venv/installed-test  ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv quickstart
