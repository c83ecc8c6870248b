# Errata: what users and developers run. `make` alone lists the targets.

PYTHON ?= python3
PYTEST_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
UV := .tools/bin/uv
LOCKS := $(addprefix requirements/,tools.lock build.lock user.lock dev.lock dbt.lock fakesnow.lock)
JARS := src/errata/jars/jars.toml

export UV_PYTHON_DOWNLOADS := never
export SPARK_LOCAL_IP := 127.0.0.1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup setup-dev setup-dbt setup-fakesnow demo demo-clv demo-case-sla test test-slow chaos sabotage check fix bench bench-quick bench-sqlmesh lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .tools/archive.stamp ## what a user needs: a private .venv, and verified jars in the user cache
	@# a command starts in half the time with bytecode, and where Python may not write it, this does
	@$(BIN)/python -m compileall -q src
	@$(BIN)/errata jars check >/dev/null 2>&1 || $(BIN)/errata jars fetch

setup-dev: setup .tools/dev.stamp ## the same, with what tests, checks and benchmarks need

setup-dbt: .tools/uv.stamp requirements/dbt.lock ## dbt with DuckDB in an environment of its own, for slow tests of campaigns
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .tools/dbt
	$(UV) pip sync --python .tools/dbt/bin/python --require-hashes requirements/dbt.lock

setup-fakesnow: .tools/fakesnow.stamp ## a Snowflake emulator in an environment of its own, for tests of copies

demo: setup ## replay the FinSight incident from bug to correction, rollback and audit, in lake and warehouse
	@# without PostgreSQL the warehouse is an emulator of Snowflake; without that, the demo does without
	@$(BIN)/python -m examples.finsight.warehouse || $(MAKE) --no-print-directory .tools/connector.stamp || true
	@$(BIN)/python examples/finsight/demo.py

demo-clv: setup ## correct 1,825 days of customer value year by year, then what follows; with a kill
	@$(BIN)/python examples/clv/demo.py

demo-case-sla: setup ## restate a year of regulatory deadlines: wrong time zone, late holidays, disputed cases
	@$(BIN)/python examples/case_sla/demo.py

test: setup-dev setup-fakesnow ## the default test suite, in three processes with one Spark session each
	@scripts/test-shared $(BIN)/python "not slow and not chaos" $(PYTEST_ARGS)

test-slow: setup-dev setup-fakesnow ## the tests marked slow: minutes rather than seconds
	$(BIN)/python -m pytest -m "slow and not chaos" $(PYTEST_ARGS)

chaos: setup-dev setup-fakesnow ## kills, faults and readers in numbers that prove something; prints figures and seeds
	$(BIN)/python -m pytest -m chaos -s $(PYTEST_ARGS)

sabotage: setup-dev setup-fakesnow ## plant bugs in a copy of the source, one by one, and see that the tests notice each
	$(BIN)/python -m pytest -m chaos -s tests/sabotage $(PYTEST_ARGS)

check: setup-dev ## formatting, lint, types, import contracts, no addresses in locks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@scripts/no-addresses $(LOCKS) $(JARS) tests/support/rest-jars.toml tests/support/kafka-jars.toml

fix: setup-dev ## let ruff format the code and repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup-dev bench-sqlmesh ## every ratio, on a quiet machine, into docs/reference/benchmarks.md; never part of the tests
	$(BIN)/python -m benchmarks --into docs/reference/benchmarks.md

bench-quick: setup-dev ## the same on small data: whether the benchmarks work
	BENCH_REPS=1 $(BIN)/python -m benchmarks --quick

bench-sqlmesh: .tools/uv.stamp ## SQLMesh in an environment of its own, to measure against
	@test -x .tools/sqlmesh/bin/sqlmesh || { $(UV) venv --quiet .tools/sqlmesh && \
	  $(UV) pip install --quiet --python .tools/sqlmesh/bin/python -r benchmarks/sqlmesh.in; }

# Locks carry versions and SHA-256 digests but no index addresses, so that they hold with any mirror.
COMPILE := $(UV) pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	--no-emit-index-url --no-emit-find-links --no-annotate --no-header

USER_EXTRAS := --extra spark --extra postgres --extra postgres-copy --extra demo

lock: .tools/uv.stamp ## resolve the locks again (add UPGRADE=--upgrade for newer versions)
	$(COMPILE) $(UPGRADE) requirements/tools.in -o requirements/tools.lock >/dev/null
	$(COMPILE) $(UPGRADE) requirements/build.in -o requirements/build.lock >/dev/null
	$(COMPILE) $(UPGRADE) -c requirements/constraints.txt pyproject.toml $(USER_EXTRAS) --extra dev \
		-o requirements/dev.lock >/dev/null
	$(COMPILE) -c requirements/dev.lock pyproject.toml $(USER_EXTRAS) -o requirements/user.lock >/dev/null
	$(COMPILE) $(UPGRADE) requirements/dbt.in -o requirements/dbt.lock >/dev/null
	$(COMPILE) $(UPGRADE) requirements/fakesnow.in -o requirements/fakesnow.lock >/dev/null
	@scripts/no-addresses $(LOCKS)

clean: ## remove the virtual environments, caches and build output (not the jars in the user cache)
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The stamps say for which inputs a step is done, so that a second `make setup` does nothing.

.tools/uv.stamp: requirements/tools.lock scripts/preflight
	@scripts/preflight $(PYTHON)
	$(PYTHON) -m venv --clear .tools
	.tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/tools.lock
	@touch $@

# One environment for both: the developers' lock has every package of the users' lock, in the same version. Where the
# developers' packages are installed, they stay, so that `make setup` between two `make test` changes nothing.
LOCKED := --compile-bytecode --python $(BIN)/python --require-hashes --build-constraints requirements/build.lock

.tools/packages.stamp: .tools/uv.stamp requirements/user.lock requirements/build.lock
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(UV) pip sync $(LOCKED) requirements/$$(test -e .tools/dev.stamp && echo dev || echo user).lock
	@touch $@

.tools/errata.stamp: .tools/packages.stamp pyproject.toml
	$(UV) pip install --python $(BIN)/python --quiet --no-deps --build-constraints requirements/build.lock -e .
	@touch $@

# install, not sync, which would remove errata itself
.tools/dev.stamp: .tools/errata.stamp requirements/dev.lock scripts/preflight
	@scripts/preflight $(PYTHON) tests
	$(UV) pip install $(LOCKED) -r requirements/dev.lock
	@touch $@

# Its own environment, because it needs an older sqlglot than the lock of Errata has.
.tools/fakesnow.stamp: .tools/uv.stamp requirements/fakesnow.lock
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .tools/fakesnow
	$(UV) pip sync --python .tools/fakesnow/bin/python --require-hashes requirements/fakesnow.lock
	@touch $@

# Snowflake's connector for the users' environment, in the version of the developers' lock.
.tools/connector.stamp: .tools/packages.stamp .tools/fakesnow.stamp
	$(UV) pip install --quiet --python $(BIN)/python --constraint requirements/dev.lock snowflake-connector-python
	@touch $@

.tools/jars.stamp: .tools/errata.stamp $(JARS)
	$(BIN)/errata jars fetch
	@touch $@

# A cache that only saves time, so that setup goes on without it.
.tools/archive.stamp: .tools/jars.stamp
	$(BIN)/errata jars archive || true
	@touch $@
