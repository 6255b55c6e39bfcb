# One command each; every target sets up the virtual environments it needs.
#
#   make                 the developer's loop: format, lint, types, architecture, unit tests, a few seeds
#   make test            everything, compiled and in part interpreted, with real clients and tools
#   make test-compiled   the same tests against the compiled build
#   make interop         all tests with real clients, real tools and a real Apache Kafka; `make test` leaves out the slowest
#   make sim SEED=7      one seed of a simulated cluster, with its trace; WORLD=node, logs, groups, … for the other worlds
#   make sims            a thousand seeds of a simulated cluster; WORLD=transactions for another world, SIMS=…, SEED=…
#   make planted         bugs planted into the code, each of which a simulation has to find; interpreted, takes long
#   make cluster         only the tests with several real nodes: faults under load, rolling restart, `moldau up`
#   make dashboards      only the tests with Prometheus: dashboards, alerts, kafka_exporter; TABLE=docs/dashboards.md puts the values there
#   make spark           only the tests with real Spark: data source, sink, lake, pipelines
#   make chaos           the same load with 300 faults, pauses and stuck disks among them; MOLDAU_FAULT_SEED=7 repeats the choices
#   make share-chaos     twenty members of a share group while 300 faults befall three nodes
#   make compaction      millions of random records through compaction, and a crash at every step of its swap
#   make sink-kills      Spark's exactly-once sink with many kills of workers, drivers and brokers
#   make lake-kills      all tests of loads and pipelines, with many kills of drivers, workers, executors and brokers
#   make copies          100,000 records copied in transactions while brokers and copiers are killed; Kafka Streams likewise
#   make console         all tests of the web console in a real browser, against Moldau and Apache Kafka
#   make mcp             only the tests of `moldau mcp`: its tools over stdio and HTTP
#   make screenshots     the pictures of docs/console.md, taken anew
#   make plugin          only the tests of moldau.testing, its pytest plugin and its sample projects
#   make starts          a broker for tests started 500 times in a row and 200 times with 8 at once: none may fail
#   make torture         kill -9 under load 50 times, and 100,000 mutated frames
#   make torture-logins  100,000 mutated handshakes and frames before a login, and 2,000 strangers who take their time
#   make demo            a broker, a topic, a producer and a consumer; then a lake filled by Spark, exactly once
#   make wheel           a wheel and an sdist in dist/, audited, and tried in clean environments without a compiler
#   make chroot          the wheel and the sdist of dist/ tried on a Debian without a compiler; needs root and mmdebstrap
#   make image           the container image from the wheel in dist/, tried with podman or docker
#   make bench           side by side with Apache Kafka; BENCH="--rows single --markdown" for a part of it
#   make generate        message classes, file map and compatibility table from their sources
#   make clean           removes environments and caches

PYTHON ?= python3
SEED ?= 1
WORLD ?= cluster
SIMS ?= 1000
SEEDS ?= 3
WORKERS ?= 2
# A page that `make dashboards` puts its table into.
TABLE ?=
# Options of bench/compare.py.
BENCH ?=

VENV := .venv
COMPILED := .venv-compiled
BIN := $(VENV)/bin
COMPILED_BIN := $(COMPILED)/bin
SOURCES := $(shell find src -name '*.py' 2>/dev/null)
FAST_TESTS := tests/architecture tests/unit tests/scripts
SLOW_TESTS := tests/sim tests/fuzz tests/crash
# All tests run on the compiled build, and all fast ones interpreted in the developer's loop. Of these `make test` repeats
# the ones below: where bytes and numbers are handled, an interpreter and a compiler can differ.
INTERPRETED_TESTS := tests/architecture tests/scripts $(addprefix tests/unit/,client net protocol records storage)
# Each worker has a Moldau and an Apache Kafka of its own; a file stays with one worker. These tests wait more than they
# work (members that come and go, tools that start), so there are more workers than cores.
INTEROP_WORKERS ?= 6
INTEROP := -n $(INTEROP_WORKERS) --dist loadfile --no-loadscope-reorder
# The broker itself, interpreted, with every client; everything runs compiled.
INTEROP_OF_THE_BROKER := $(addprefix tests/interop/test_,confluent.py aiokafka.py kafka_python.py kcat.py)
# What the time of a run went to stands at its end.
SLOWEST := --durations=25 --durations-min=1
# Without this pytest would prefer the interpreted sources to the installed, compiled ones.
ON_COMPILED := MOLDAU_EXPECT_COMPILED=1 MOLDAU_COMMAND="$(CURDIR)/$(COMPILED_BIN)/moldau" \
	$(COMPILED_BIN)/python -m pytest -o pythonpath=. $(SLOWEST)
ON_INTERPRETED := MOLDAU_COMMAND="$(CURDIR)/$(BIN)/moldau" $(BIN)/python -m pytest $(SLOWEST)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: check format lint types generated generate docs fast static test test-interpreted test-compiled interop interop-brief cluster dashboards cluster-faults cluster-others jars spark spark-brief lake-brief chaos share-chaos compaction sink-kills lake-kills copies console console-brief mcp screenshots plugin starts torture torture-logins sim sims planted demo wheel chroot image bench clean compiled

# Types are checked on one core while the tests run on the other.
check: format
	@$(MAKE) --no-print-directory --jobs=2 types lint-and-generated fast WORKERS=$(WORKERS)

.PHONY: lint-and-generated
lint-and-generated: lint generated

# --- environments -----------------------------------------------------------------------------------------------

define check_python
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Moldau needs Python 3.11 or newer; $(PYTHON) is older. Name another one: make PYTHON=python3.12"; exit 1; }
endef

define make_environment
	$(check_python)
	@$(PYTHON) -m venv $(1) || $(PYTHON) -m virtualenv $(1) || \
		{ echo "$(PYTHON) cannot make a virtual environment: install its venv module (Debian: apt install python3-venv)"; exit 1; }
endef

$(VENV)/.ready: pyproject.toml setup.py
	@echo "setting up $(VENV) (once)"
	$(call make_environment,$(VENV))
	@MOLDAU_COMPILE=0 $(BIN)/pip install --quiet --no-compile --editable ".[dev,interop]"
	@touch $@

# What compiling needs is there in seconds; Spark's packages take longer and come while the compiler works.
$(COMPILED)/.can-compile: pyproject.toml
	@echo "setting up $(COMPILED) (once)"
	$(call make_environment,$(COMPILED))
	@$(COMPILED_BIN)/pip install --quiet --no-compile $$($(PYTHON) tools/list_requirements.py dev)
	@touch $@

$(COMPILED)/.ready: $(COMPILED)/.can-compile
	@$(COMPILED_BIN)/pip install --quiet --no-compile $$($(PYTHON) tools/list_requirements.py dev interop spark formats declarative)
	@touch $@

$(COMPILED)/.built: $(COMPILED)/.can-compile $(SOURCES) setup.py compiled_modules.txt
	@echo "compiling the hot modules"
	@rm -rf $(COMPILED)/build/lib* $(COMPILED)/build/bdist*
	@start=$$(date +%s); MOLDAU_COMPILE=1 MOLDAU_BUILD_BASE="$(CURDIR)/$(COMPILED)/build" \
		$(COMPILED_BIN)/pip install --quiet --no-build-isolation --no-deps --force-reinstall . && \
		echo "compiled in $$(($$(date +%s) - start)) s"
	@touch $@

$(COMPILED)/.installed: $(COMPILED)/.ready $(COMPILED)/.built
	@touch $@

compiled: $(COMPILED)/.installed

# Apache Kafka's jars, for the tests that run its tools and its broker; without them those are skipped.
jars:
	@{ tools/ensure_java.sh && tools/fetch_kafka.sh; } || [ "$$CI" != true ]

# --- the developer's loop ---------------------------------------------------------------------------------------

format: $(VENV)/.ready
	@$(BIN)/ruff format --quiet .

lint: $(VENV)/.ready
	@$(BIN)/ruff check --quiet .

types: $(VENV)/.ready
	@$(BIN)/mypy --strict

generated: $(VENV)/.ready
	@$(BIN)/python tools/generate_messages.py --check
	@$(BIN)/python tools/generate_record_fields.py --check
	@$(BIN)/python tools/generate_setting_types.py --check
	@$(BIN)/python tools/generate_docs.py --check

fast: $(VENV)/.ready
	@MOLDAU_SIM_SEEDS=2 $(ON_INTERPRETED) -n $(WORKERS) $(FAST_TESTS) tests/sim

generate: $(VENV)/.ready
	@$(BIN)/python tools/generate_messages.py
	@$(BIN)/python tools/generate_record_fields.py
	@$(BIN)/python tools/generate_setting_types.py
	@$(BIN)/ruff format --quiet .
	@$(BIN)/python tools/generate_docs.py

docs: $(VENV)/.ready
	@$(BIN)/python tools/generate_docs.py

# --- everything -------------------------------------------------------------------------------------------------

# Types are checked, packages are fetched and what needs no compiler is tested while the compiler works.
test:
	@$(MAKE) --no-print-directory --jobs=4 --output-sync=target static compiled jars test-interpreted
	@$(MAKE) --no-print-directory test-compiled

static: format-check lint types generated

.PHONY: format-check
format-check: $(VENV)/.ready
	@$(BIN)/ruff format --quiet --check .

# Simulations do the same with a seed in both builds, and take twice as long here: they run compiled.
test-interpreted: $(VENV)/.ready
	@$(ON_INTERPRETED) -n $(WORKERS) $(INTERPRETED_TESTS)
	@$(ON_INTERPRETED) -n $(WORKERS) -m planted tests/sim/test_planted_findings.py
	@$(ON_INTERPRETED) $(INTEROP) $(INTEROP_OF_THE_BROKER)

# Nodes that are killed and Spark both wait more than they work, so four of them share the two cores. The tools of others
# come afterwards: with them beside it, Spark gives up before its workers have answered.
test-compiled: $(COMPILED)/.installed
	@MOLDAU_SIM_SEEDS=$(SEEDS) $(ON_COMPILED) -n $(WORKERS) tests/unit tests/scripts $(SLOW_TESTS)
	@$(MAKE) --no-print-directory --jobs=4 --output-sync=target spark-brief cluster-faults cluster-others lake-brief console-brief
	@$(MAKE) --no-print-directory interop-brief

interop-brief: $(COMPILED)/.installed
	@MOLDAU_INTEROP=brief $(ON_COMPILED) $(INTEROP) tests/interop tests/testing tests/mcp

interop: $(COMPILED)/.installed
	@$(ON_COMPILED) $(INTEROP) tests/interop

cluster: $(COMPILED)/.installed
	@$(ON_COMPILED) -s tests/cluster

dashboards: $(COMPILED)/.installed
	@MOLDAU_TABLE_INTO=$(TABLE) $(ON_COMPILED) -s $(addprefix tests/interop/test_,dashboards.py alert_rules.py kafka_exporter.py)

# The same in two parts that run side by side: the long load with faults, and all others.
cluster-faults: $(COMPILED)/.installed
	@$(ON_COMPILED) -s tests/cluster/test_faults.py

cluster-others: $(COMPILED)/.installed
	@$(ON_COMPILED) -s tests/cluster --ignore=tests/cluster/test_faults.py

spark-brief: $(COMPILED)/.installed
	@MOLDAU_SPARK=brief $(ON_COMPILED) tests/spark

lake-brief: $(COMPILED)/.installed
	@$(ON_COMPILED) tests/lake

spark: $(COMPILED)/.installed
	@MOLDAU_SPARK_CLUSTER=1 $(ON_COMPILED) tests/spark tests/lake

chaos: $(COMPILED)/.installed
	@MOLDAU_FAULTS=300 $(ON_COMPILED) -s tests/cluster/test_faults.py

share-chaos: $(COMPILED)/.installed
	@MOLDAU_SHARE_FAULTS=300 $(ON_COMPILED) -s tests/cluster/test_share_faults.py

# Chromium comes from the system (Debian: apt install chromium); without it these tests are skipped.
console: $(COMPILED)/.installed jars
	@tools/fetch_axe.sh || true
	@$(ON_COMPILED) tests/console

console-brief: $(COMPILED)/.installed
	@MOLDAU_CONSOLE=brief $(ON_COMPILED) tests/console

mcp: $(COMPILED)/.installed jars
	@$(ON_COMPILED) tests/unit/mcp tests/mcp

screenshots: $(VENV)/.ready
	@$(BIN)/python tools/take_screenshots.py

plugin: $(COMPILED)/.installed
	@$(ON_COMPILED) -n $(WORKERS) tests/unit/testing tests/testing

starts: $(COMPILED)/.installed
	@$(COMPILED_BIN)/python tools/start_brokers.py

torture: $(COMPILED)/.installed
	@MOLDAU_KILLS=50 MOLDAU_FUZZ_FRAMES=100000 $(ON_COMPILED) tests/crash tests/fuzz

torture-logins: $(COMPILED)/.installed
	@MOLDAU_THOROUGH=1 $(ON_COMPILED) -s tests/fuzz/test_mutated_logins.py

sim: $(VENV)/.ready
	@$(BIN)/python -m moldau.sim $(if $(filter-out node,$(WORLD)),--$(WORLD)) --seed $(SEED) --verbose

sims: $(COMPILED)/.installed
	@$(COMPILED_BIN)/python -m moldau.sim $(if $(filter-out node,$(WORLD)),--$(WORLD)) --seed $(SEED) --count $(SIMS)

planted: $(VENV)/.ready
	@MOLDAU_SIM_SEEDS=10 $(ON_INTERPRETED) -n $(WORKERS) tests/sim -m planted

lake-kills: $(COMPILED)/.installed
	@MOLDAU_LAKE=thorough MOLDAU_LAKE_KILLS=10 MOLDAU_LAKE_SPARK_KILLS=30 $(ON_COMPILED) -s tests/lake

compaction: $(COMPILED)/.installed
	@MOLDAU_COMPACTION_RECORDS=5000000 MOLDAU_COMPACTION_STEPS=50 MOLDAU_SIM_SEEDS=300 $(ON_COMPILED) tests/sim/test_compaction_seeds.py

sink-kills: $(COMPILED)/.installed
	@MOLDAU_SPARK_KILLS=20 MOLDAU_SPARK_SEEDS=20 $(ON_COMPILED) -s tests/spark/test_sink_kills.py tests/spark/test_sink_protocol.py

copies: $(COMPILED)/.installed
	@MOLDAU_COPIES=100000 MOLDAU_COPY_FAULTS=40 $(ON_COMPILED) -s tests/interop/test_transactional_copies.py
	@MOLDAU_STREAMS_LINES=30000 MOLDAU_STREAMS_KILLS=20 $(ON_COMPILED) -s tests/interop/test_streams.py

# --- to look at -------------------------------------------------------------------------------------------------

# Sets up what each of its parts needs when that part is next, and says so.
demo:
	$(check_python)
	@$(PYTHON) tools/demo.py

bench: $(COMPILED)/.installed jars
	@$(COMPILED_BIN)/python bench/compare.py --moldau "$(CURDIR)/$(COMPILED_BIN)/moldau" $(BENCH)

wheel:
	$(check_python)
	@$(PYTHON) tools/make_wheel.py

chroot:
	$(check_python)
	@$(PYTHON) tools/try_chroot.py

image:
	$(check_python)
	@$(PYTHON) tools/try_image.py

clean:
	rm -rf $(VENV) $(COMPILED) .venv-demo .venv-wheel dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
