# Every command of the repository. `make` prints them; what CI runs is `.ci/run`.
#
# Nothing here calls a console script where `python -m` does, nor an absolute path: the checkout may stand anywhere, also
# where the path has a space in it.

PYTHON ?= python3
PY := .venv/bin/python
STAMP := .venv/.set-up
FAST := tests/unit tests/architecture
# the files that take longest first, on two processes: each file is one process's, with the parts that it starts
SLOW := -n 2 --dist loadfile tests/acceptance tests/integration tests/simulator tests/contract
SEEDS ?= 20000

# A copy of a checkout carries a .venv that still points to where it was made.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(shell pwd -P))
.PHONY: $(STAMP)
endif

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all soak check bench clean

help: ## print this
	@echo "make TARGET, one of:"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## make .venv with everything in it (PYTHON=python3.12 for another Python, 3.11 or newer)

$(STAMP): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "statestore needs Python 3.11 or newer; name one: make PYTHON=python3.12 setup" >&2; exit 1; }
	@if [ "$$(cat $(STAMP) 2>/dev/null || pwd -P)" != "$$(pwd -P)" ] || ! $(PY) -m pip --version >/dev/null 2>&1; then \
		echo "making .venv with $$("$(PYTHON)" --version)"; \
		"$(PYTHON)" -m venv --clear .venv || exit 1; \
	fi
	@rm -f $(STAMP)
	@echo "installing statestore and what it needs into .venv (a minute or two)"
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@pwd -P > $(STAMP)
	@echo "set up"

demo: setup ## the main job on real parts and real data, compared with Postgres (about two minutes)
	@.venv/bin/statestore demo

test: setup ## every tier of tests but what is marked slow, the fast ones first
	@echo "== tests/unit, tests/architecture"
	@$(PY) -m pytest -q -m "not slow" $(FAST)
	@echo "== tests/acceptance, tests/integration, tests/simulator, tests/contract (about ten minutes)"
	@$(PY) -m pytest -q -m "not slow" $(SLOW)

test-all: setup ## every test, the slow ones too
	@$(PY) -m pytest -q $(FAST)
	@$(PY) -m pytest -q $(SLOW)

soak: setup ## hunt for wrong ends: SEEDS=20000 random histories with faults, and as many of random products, then real processes killed (about half an hour)
	@$(PY) -m tests.simulator.soak --seeds $(SEEDS)
	@$(PY) -m tests.simulator.soak --seeds $(SEEDS) --products
	@$(PY) -m pytest -v -m slow tests/integration/faults tests/acceptance/test_run_killed.py

check: setup ## ruff, mypy --strict, import-linter
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict statestore processor registry
	$(PY) -m mypy --strict benchmarks examples
	$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'

bench: setup ## measure the steps alone and the Spark job; docs/benchmarks.md keeps the table
	@$(PY) -m benchmarks.run

clean: ## stop what `local up` left running, and remove what was made here
	@if [ -x .venv/bin/statestore ]; then .venv/bin/statestore local down >/dev/null 2>&1 || true; fi
	rm -rf .venv .statestore .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
