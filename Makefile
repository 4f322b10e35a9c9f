# Every command of the repository. `make` prints them; CI runs `.ci/run`.
#
# The commands use `python -m` instead of console scripts where possible, and no absolute path: the checkout may be in any directory,
# also in one whose path has a space.

PYTHON ?= python3
PY := .venv/bin/python
STAMP := .venv/.set-up
SMALL := .venv/.small
# Three processes on 2 cores, because many tests wait.
FAST := -n 3 --dist loadfile tests/unit tests/architecture tests/fuzz
# The marker `rest` keeps a test out of `make test`; `make test-rest` runs exactly those. The marker `slow` keeps it out of both.
CORE := "not slow and not rest"
REST := "rest and not slow"
# One of the processes runs all tests of a file, with the parts that it starts. The files run in the order of the folders: long
# files first, and at the end short ones, so that all processes end together.
SLOW := -n 3 --dist loadfile --no-loadscope-reorder tests/acceptance tests/simulator tests/contract tests/integration tests/infra
# In `make test` one process runs all jobs, so that Spark and a broker for them start once, and one process the contract, so that
# DynamoDB Local starts once. `make test-rest` has too many jobs for one process.
TOGETHER := --together tests/integration/job --together tests/contract
SEEDS ?= 20000
MINUTES ?= 10
OUTAGES ?= 200
# Tests start hundreds of processes. Each would compile the modules again where the environment forbids Python to keep them.
unexport PYTHONDONTWRITEBYTECODE
# Random histories of the simulator: after each edit and in `make test`, and in `make test-rest`. `make test-all` runs 10000.
FEW_SEEDS := 200
SEEDS_OF_REST := 1000
# Examples of each property: without a number a run takes 100.
FEW_EXAMPLES := 40
EXAMPLES_OF_REST := 300
FEW := STATESTORE_SEEDS=$(FEW_SEEDS) STATESTORE_EXAMPLES=$(FEW_EXAMPLES)
MODULES ?= statestore/writes.py $(wildcard processor/engine/protocol/*.py processor/engine/rounds/*.py)
PROPERTIES := "hypothesis and not slow and not rest"
SPARK ?= 4.1.1

# A copied checkout has a .venv that still points to the directory of the original.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(shell pwd -P))
.PHONY: $(STAMP)
endif
ifneq ($(shell cat $(SMALL) 2>/dev/null),$(shell pwd -P))
.PHONY: $(SMALL)
endif

.DEFAULT_GOAL := help
.PHONY: help tour setup demo demo-live test test-quick test-rest test-browser test-all test-spark test-spark-start soak soak-live soak-transactions soak-outages night mutants screenshots screens check bench bench-peers docs package clean

help: ## print this list
	@echo "make TARGET, one of:"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1|\2/p' Makefile | while IFS='|' read -r name text; do printf '%-16s %s\n' "$$name" "$$text"; done

tour: $(SMALL) ## make a small .venv (no Java, no Spark, under a minute), and show how five topics become one document
	@.venv/bin/statestore tour

setup: $(STAMP) ## make .venv and install everything into it (PYTHON=python3.12 for another Python, 3.11 or newer)

$(SMALL) $(STAMP): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "statestore needs Python 3.11 or newer; choose one: make PYTHON=python3.12 $(or $(MAKECMDGOALS),setup)" >&2; exit 1; }
	@"$(PYTHON)" -m infra.set_up $(if $(filter $(SMALL),$@),small,full)

demo: setup ## run the main job on real parts and real data, and compare its documents with the answer of SQL (1 to 2.5 minutes)
	@.venv/bin/statestore demo

demo-live: setup ## the same on a live database: an application writes to Postgres, Debezium sends the changes (three minutes, after a download of 70 MB)
	@.venv/bin/statestore demo --live

# The fast tiers need no jars. Meanwhile the other processes fetch those of the slow tiers, once a machine.
test: setup ## run every tier of tests, without the tests of `make test-rest` and the slow ones; the fast tiers first
	@for set in kafka_broker dynamodb_local spark_kafka; do \
		$(PY) -c "from processor.environment.programs import downloads; downloads.$${set}_jars()" >/dev/null 2>&1 & \
	done
	@echo "== tests/unit, tests/architecture, tests/fuzz"
	@$(FEW) $(PY) -m pytest -q -m $(CORE) $(FAST)
	@echo "== tests/acceptance, tests/simulator, tests/contract, tests/integration (about four minutes)"
	@$(FEW) $(PY) -m pytest -q -m $(CORE) $(TOGETHER) $(SLOW) --unused-actions

test-quick: setup ## run what takes seconds, after each edit: unit, architecture, contract on memory and Postgres, and 200 random histories
	@$(FEW) $(PY) -m pytest -q -m $(CORE) -n 3 --dist loadfile tests/unit tests/architecture \
		tests/simulator/test_seeds.py tests/simulator/test_ablations.py
	@$(FEW) $(PY) -m pytest -q -m $(CORE) -n 3 --dist loadfile -k "memory or postgres" tests/contract

test-rest: setup ## run the tests that `make test` leaves to CI: more of Spark, of the pages and of the stores with more random histories (about twenty minutes)
	@$(PY) -m pytest -q -m $(REST) $(SLOW) tests/unit
	@STATESTORE_SEEDS=$(SEEDS_OF_REST) $(PY) -m pytest -q -m $(CORE) -n 2 --dist loadfile tests/simulator
	@STATESTORE_EXAMPLES=$(EXAMPLES_OF_REST) $(PY) -m pytest -q -m $(PROPERTIES) -n 2 --dist loadfile tests/unit tests/contract

test-browser: setup ## run the slow tests that drive Chromium: the console, also while a job runs, and the page of the driver (two minutes)
	@$(PY) -m pytest -q -m slow tests/integration/web/console tests/integration/job/test_console_of_job.py tests/integration/metrics/test_browser.py

screenshots: setup ## take the screenshots of the console in docs/console again, with Chromium (a minute)
	@$(PY) -m tests.screenshots.take

screens: setup ## write the screens of terminal sessions in README.md and docs/first-product.md again, as SVG (seconds)
	@$(PY) -m tests.screenshots.terminal

test-spark: setup ## run the fast tests and those that start Spark on Spark 4.1.1 and Python 3.13 (SPARK=4.0.0 for another one)
	@$(PY) -m tests.support.other_spark $(SPARK)

test-spark-start: setup ## run those tests of `make test` that start Spark on Spark 4.1.1 and Python 3.13 (SPARK=4.0.0 for another one)
	@$(PY) -m tests.support.other_spark --start $(SPARK)

test-all: setup ## run every test, also the slow ones; then those that start Spark on each other Spark
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[package,live]'
	@$(PY) -m pytest -q $(FAST)
	@$(PY) -m pytest -q $(SLOW) --unused-actions
	@$(PY) -m tests.support.other_spark --slow 4.0.0 4.1.1

soak: setup ## search for wrong documents: SEEDS=20000 random histories with faults, as many of random products and of sets of them, a tenth of mutated inputs, then killed processes, and edits under load (an hour)
	@$(PY) -m tests.simulator.soak --seeds $(SEEDS)
	@$(PY) -m tests.simulator.soak --seeds $(SEEDS) --kind products
	@$(PY) -m tests.simulator.soak --seeds $(SEEDS) --kind sets
	@$(PY) -m tests.simulator.soak --seeds $(SEEDS) --kind topics
	@$(PY) -m tests.simulator.soak --seeds $$(($(SEEDS) / 2)) --kind mixed
	@$(PY) -m tests.simulator.soak --seeds $$(($(SEEDS) / 4)) --kind "mixed edits"
	@$(PY) -m tests.simulator.soak --seeds $$(($(SEEDS) / 20)) --kind "drawn edits"
	@$(PY) -m tests.simulator.soak --seeds $$(($(SEEDS) / 20)) --kind every
	@$(PY) -m tests.simulator.soak --seeds $$(($(SEEDS) / 200)) --kind "every edits"
	@$(PY) -m tests.integration.product.test_sql_texts $$(($(SEEDS) / 10))
	@$(PY) -m tests.fuzz.soak --seeds $$(($(SEEDS) / 10))
	@$(PY) -m pytest -v -m slow tests/integration/faults tests/acceptance/test_run_killed.py
	@$(PY) -m tests.edits.soak --seconds 90

soak-live: setup ## kill Debezium, the broker and the job in turn while an application writes for MINUTES=10, and compare the documents with the database
	@$(PY) -m tests.live.soak --minutes $(MINUTES)

soak-transactions: setup ## the same with transactions over two to five tables: no document behind a gate may show a part of one; the same job also has one without a gate
	@$(PY) -m tests.transactions.soak --minutes $(MINUTES)

soak-outages: setup ## cut and restart registry, store, broker and schema registry OUTAGES=200 times, alone and together, under load, with the table in Postgres and then in DynamoDB Local, and compare the documents with SQL (four hours)
	@$(PY) -m tests.outages.soak --outages $(OUTAGES)
	@$(PY) -m tests.outages.soak --outages $(OUTAGES) --store dynamodb

night: setup ## cause the events of a night on a real job, read status, health, console, Prometheus and log at each moment, and write tests/night/seen.md (half an hour; needs prometheus and chromium)
	@$(PY) -m tests.night.scene --page tests/night/seen.md

mutants: setup ## put small faults into the protocol, one at a time, and print those that no unit test notices (MODULES="processor/engine/protocol/settle.py" for some of it; an hour and more)
	@$(PY) -m tests.mutation.run $(MODULES)

check: setup ## run ruff, mypy --strict (tests too) and import-linter
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict --num-workers 2
	$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()'
	$(PY) -m pytest -q tests/architecture/test_words.py

bench: setup ## measure the steps alone, what grows, and the Spark job, and print the tables of benchmarks/results.md
	@$(PY) -m benchmarks.growth
	@$(PY) -m benchmarks.run

bench-peers: setup ## run histories through statestore, other systems and older designs, and print their tables of benchmarks/results.md
	@$(PY) -m benchmarks.peers
	@$(PY) -m benchmarks.peers.old_ways
	@$(PY) -m benchmarks.peers.whole_jobs

docs: setup ## build the pages as a static site into site/; fetches the site generator into .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@$(PY) -m docs.stage build/pages
	@$(PY) -m zensical build --clean --strict

package: setup ## make the files of a deployment on Glue or EMR in build/package; fetches the packing tools into .venv
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[package]'
	@$(PY) -m infra.package

clean: ## stop the parts of `local up`, and remove all generated files
	@if [ -x .venv/bin/statestore ]; then .venv/bin/statestore local down >/dev/null 2>&1 || true; fi
	rm -rf .venv .statestore .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache build dist site *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
