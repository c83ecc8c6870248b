# Errata: what users and developers run. `make` alone lists the targets.

PYTHON ?= python3
PYTEST_ARGS ?=
# Any target with SPARK=4.0 works on the second lane: its own locks, its own .venv-4.0, jars for that Spark.
SPARK := 4.1
LANE := $(if $(filter-out 4.1,$(SPARK)),-$(SPARK))
VENV := .venv$(LANE)
BIN := $(VENV)/bin
UV := .tools/bin/uv
USER_LOCK := requirements/user$(LANE).lock
DEV_LOCK := requirements/dev$(LANE).lock
$(if $(wildcard $(USER_LOCK)),,$(error SPARK=$(SPARK) is not supported; there are SPARK=4.1, the default, and SPARK=4.0))
LOCKS := $(addprefix requirements/,tools.lock build.lock user.lock dev.lock user-4.0.lock dev-4.0.lock dbt.lock \
	fakesnow.lock orchestrators.lock airflow.lock)
JARS := src/errata/jars/jars.toml
LANE_FILES := $(BIN)/python tests/support/lanes.py files

export UV_PYTHON_DOWNLOADS := never
export SPARK_LOCAL_IP := 127.0.0.1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup setup-dev setup-dbt setup-fakesnow setup-airflow setup-orchestrators demo demo-clv demo-case-sla demo-novashop test tested test-slow test-airflow test-orchestrators chaos sabotage check fix bench bench-quick bench-sqlmesh lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: .tools/archive$(LANE).stamp ## what a user needs: a private .venv, and verified jars in the user cache
	@# a command starts in half the time with bytecode, and where Python may not write it, this does
	@$(BIN)/python -m compileall -q src
	@$(BIN)/errata jars check >/dev/null 2>&1 || $(BIN)/errata jars fetch

setup-dev: setup .tools/dev$(LANE).stamp ## the same, with what tests, checks and benchmarks need

setup-dbt: .tools/uv.stamp requirements/dbt.lock ## dbt with DuckDB in an environment of its own, for slow tests of campaigns
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .tools/dbt
	$(UV) pip sync --python .tools/dbt/bin/python --require-hashes requirements/dbt.lock

setup-fakesnow: .tools/fakesnow.stamp ## a Snowflake emulator in an environment of its own, for tests of copies

setup-orchestrators: .tools/orchestrators.stamp ## Dagster and Prefect with Errata in an environment of their own

setup-airflow: .tools/airflow.stamp ## Airflow with Errata's provider in an environment of its own

demo: setup ## replay the FinSight incident from bug to correction, rollback and audit, in lake and warehouse
	@# without PostgreSQL the warehouse is an emulator of Snowflake; without that, the demo does without
	@$(BIN)/python -m examples.finsight.warehouse || $(MAKE) --no-print-directory .tools/connector$(LANE).stamp || true
	@$(BIN)/python examples/finsight/demo.py

demo-clv: setup ## correct 1,825 days of customer value year by year, then what follows; with a kill
	@$(BIN)/python examples/clv/demo.py

demo-case-sla: setup ## restate a year of regulatory deadlines: wrong time zone, late holidays, disputed cases
	@$(BIN)/python examples/case_sla/demo.py

demo-novashop: setup-dev ## rebuild nine hours of events that were never recorded, while the stream keeps writing
	@$(BIN)/python examples/novashop/demo.py

test: setup-dev $(if $(LANE),,setup-fakesnow) ## the default test suite, in three processes; SPARK=4.0: spine, gate, catalogs and kills
	@$(if $(LANE),files=$$($(LANE_FILES)) &&) scripts/test-shared $(BIN)/python "not slow and not chaos" $(if $(LANE),$$files) $(PYTEST_ARGS)

tested: setup-dev ## run the tests of tests/lanes.toml and record what passed, for the table of supported versions
	@rm -rf .tools/tested$(LANE) && mkdir .tools/tested$(LANE)
	@files=$$($(LANE_FILES)) && scripts/test-shared $(BIN)/python "not slow and not chaos" $$files --record=$(CURDIR)/.tools/tested$(LANE) $(PYTEST_ARGS)
	@$(BIN)/python tests/support/lanes.py join .tools/tested$(LANE)
	@$(BIN)/python docs/generate.py

test-slow: setup-dev setup-fakesnow ## the tests marked slow: minutes rather than seconds
	$(BIN)/python -m pytest -m "slow and not chaos" $(PYTEST_ARGS)

test-orchestrators: setup-dev setup-orchestrators ## the guides on Dagster and Prefect, run by these
	$(BIN)/python -m pytest tests/orchestrators $(PYTEST_ARGS)

test-airflow: setup-dev setup-airflow ## the provider: its rules, and its example DAGs in a real Airflow with real Spark; minutes
	.tools/airflow/bin/python -m pytest -c providers/airflow/pyproject.toml providers/airflow/tests $(PYTEST_ARGS)

chaos: setup-dev setup-fakesnow ## kills, faults and readers in numbers that prove something; prints figures and seeds
	$(BIN)/python -m pytest -m chaos -s $(PYTEST_ARGS)

sabotage: setup-dev setup-fakesnow ## plant bugs in a copy of the source, one by one, and see that the tests notice each
	$(BIN)/python -m pytest -m chaos -s tests/sabotage $(PYTEST_ARGS)

check: setup-dev ## formatting, lint, types, import contracts, no addresses in locks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	@scripts/no-addresses $(LOCKS) $(JARS) tests/support/rest-jars.toml tests/support/kafka-jars.toml tests/support/connect-jars.toml

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

USER_EXTRAS := --extra spark --extra postgres --extra postgres-copy --extra metrics --extra demo

lock: .tools/uv.stamp ## resolve the locks again (add UPGRADE=--upgrade for newer versions)
	$(COMPILE) $(UPGRADE) requirements/tools.in -o requirements/tools.lock >/dev/null
	$(COMPILE) $(UPGRADE) requirements/build.in -o requirements/build.lock >/dev/null
	$(COMPILE) $(UPGRADE) -c requirements/constraints.txt -c requirements/spark-4.1.txt pyproject.toml $(USER_EXTRAS) --extra dev \
		-o requirements/dev.lock >/dev/null
	$(COMPILE) -c requirements/dev.lock pyproject.toml $(USER_EXTRAS) -o requirements/user.lock >/dev/null
	@# the second lane differs in Spark alone
	@sed -n 's/^\([a-z0-9._-]*==.*[^ ]\) *\\$$/\1/p' requirements/dev.lock | grep -v '^pyspark==\|^py4j==' >.tools/same.txt
	$(COMPILE) -c .tools/same.txt -c requirements/spark-4.0.txt pyproject.toml $(USER_EXTRAS) --extra dev \
		-o requirements/dev-4.0.lock >/dev/null
	$(COMPILE) -c requirements/dev-4.0.lock pyproject.toml $(USER_EXTRAS) -o requirements/user-4.0.lock >/dev/null
	$(COMPILE) $(UPGRADE) requirements/dbt.in -o requirements/dbt.lock >/dev/null
	$(COMPILE) $(UPGRADE) requirements/fakesnow.in -o requirements/fakesnow.lock >/dev/null
	$(COMPILE) $(UPGRADE) -c requirements/constraints.txt pyproject.toml --extra spark requirements/orchestrators.in \
		-o requirements/orchestrators.lock >/dev/null
	$(COMPILE) $(UPGRADE) requirements/airflow.in -o requirements/airflow.lock >/dev/null
	@scripts/no-addresses $(LOCKS)

clean: ## remove the virtual environments, caches and build output (not the jars in the user cache)
	rm -rf .venv .venv-* .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find src tests examples benchmarks providers -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# The stamps say for which inputs a step is done, so that a second `make setup` does nothing.

.tools/uv.stamp: requirements/tools.lock scripts/preflight
	@scripts/preflight $(PYTHON)
	$(PYTHON) -m venv --clear .tools
	.tools/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/tools.lock
	@touch $@

# One environment for both: the developers' lock has every package of the users' lock, in the same version. Where the
# developers' packages are installed, they stay, so that `make setup` between two `make test` changes nothing.
LOCKED := --compile-bytecode --python $(BIN)/python --require-hashes --build-constraints requirements/build.lock

.tools/packages$(LANE).stamp: .tools/uv.stamp $(USER_LOCK) requirements/build.lock
	$(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
	$(UV) pip sync $(LOCKED) $$(test -e .tools/dev$(LANE).stamp && echo $(DEV_LOCK) || echo $(USER_LOCK))
	@touch $@

.tools/errata$(LANE).stamp: .tools/packages$(LANE).stamp pyproject.toml
	$(UV) pip install --python $(BIN)/python --quiet --no-deps --build-constraints requirements/build.lock -e .
	@touch $@

# install, not sync, which would remove errata itself
.tools/dev$(LANE).stamp: .tools/errata$(LANE).stamp $(DEV_LOCK) scripts/preflight
	@scripts/preflight $(PYTHON) tests
	$(UV) pip install $(LOCKED) -r $(DEV_LOCK)
	@touch $@

# Its own environment, because it needs an older sqlglot than the lock of Errata has.
.tools/fakesnow.stamp: .tools/uv.stamp requirements/fakesnow.lock
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .tools/fakesnow
	$(UV) pip sync --python .tools/fakesnow/bin/python --require-hashes requirements/fakesnow.lock
	@touch $@

# Its own environment, with Errata in it: Prefect needs an older cachetools than the lock of Errata has.
.tools/orchestrators.stamp: .tools/uv.stamp requirements/orchestrators.lock pyproject.toml
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .tools/orchestrators
	$(UV) pip sync --python .tools/orchestrators/bin/python --require-hashes --build-constraints requirements/build.lock \
		requirements/orchestrators.lock
	$(UV) pip install --python .tools/orchestrators/bin/python --quiet --no-deps \
		--build-constraints requirements/build.lock -e .
	@touch $@

# Its own environment, because Airflow needs other versions of packages that Errata has too.
.tools/airflow.stamp: .tools/uv.stamp requirements/airflow.lock requirements/build.lock providers/airflow/pyproject.toml
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .tools/airflow
	$(UV) pip sync --python .tools/airflow/bin/python --require-hashes requirements/airflow.lock
	$(UV) pip install --python .tools/airflow/bin/python --quiet --no-deps --build-constraints requirements/build.lock \
		-e providers/airflow
	@touch $@

# Snowflake's connector for the users' environment, in the version of the developers' lock.
.tools/connector$(LANE).stamp: .tools/packages$(LANE).stamp .tools/fakesnow.stamp
	$(UV) pip install --quiet --python $(BIN)/python --constraint $(DEV_LOCK) snowflake-connector-python
	@touch $@

.tools/jars$(LANE).stamp: .tools/errata$(LANE).stamp $(JARS)
	$(BIN)/errata jars fetch
	@touch $@

# A cache that only saves time, so that setup goes on without it.
.tools/archive$(LANE).stamp: .tools/jars$(LANE).stamp
	$(BIN)/errata jars archive || true
	@touch $@
