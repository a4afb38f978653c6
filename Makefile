# Two commands do all the set-up: `make demo` and `make test`. Both need Python 3.11 or newer, and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test fuzz lint format docs clean

help: ## what there is to make
	@grep -E '^[a-z]+:.*## ' Makefile | sed 's/:.*## /\t/'

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "exarch_sql needs Python 3.11 or newer; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $(READY)

demo: $(READY) ## the main job end to end on the bundled session
	@$(BIN)/exarch-sql demo

test: $(READY) lint ## lint, types and every test
	$(BIN)/pytest -q -n auto --randomly-seed=1

fuzz: $(READY) ## every test in a new order, the property tests with new dice
	$(BIN)/pytest -q -n auto --hypothesis-profile=new

lint: $(READY) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## put the code into its one form
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(READY) ## write the generated pages anew
	$(BIN)/python docs/generate.py
	$(BIN)/python benchmarks/render.py

clean: ## what was built, not what was written
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
