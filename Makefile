# One entry point for people and CI. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=
# Test processes; two keep the real API servers of the suite from starving each other.
TEST_PROCESSES ?= 2

COMPILED := build/compiled
COMPILED_PYTHON := $(COMPILED)/venv/bin/python
COMPILED_STAMP := $(COMPILED)/.installed
ENGINE_TESTS := tests/golden tests/unit/engine tests/scenarios tests/properties tests/simulation

.PHONY: help install demo test compiled test-compiled check verify up control-plane bench \
	bench-engine clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (once; about a minute)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable ".[local,speed]"
	@touch $@

install: $(STAMP) ## Make .venv and install everything into it

demo: $(STAMP) ## Run the main job: queues, Jobs, webhook and manager on an embedded control plane
	@$(BIN)/sluice demo

test: $(STAMP) ## Run the tests (those on the real control plane too, where its binaries are)
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile $(PYTEST_ARGS)

# The wheel in an environment of its own; what it needs is taken from .venv.
$(COMPILED_STAMP): $(STAMP) hatch_build.py $(shell find queue webhook manifests -type f -not -name '*.pyc')
	@rm -rf $(COMPILED) && mkdir -p build
	@echo "compiling the engine into $(COMPILED) (about two minutes)"
	@SLUICE_MYPYC=1 $(BIN)/python -m build --wheel --outdir $(COMPILED)/wheel > $(COMPILED).log 2>&1 \
		|| { cat $(COMPILED).log; exit 1; }
	@$(BIN)/python -m venv $(COMPILED)/venv
	@$(COMPILED_PYTHON) -m pip install --quiet --no-index --no-deps $(COMPILED)/wheel/*.whl
	@$(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))" \
		> "$$(echo $(COMPILED)/venv/lib/python3*/site-packages)/dependencies.pth"
	@touch $@

compiled: $(COMPILED_STAMP) ## Build a wheel with the engine compiled, and install it into build/compiled/venv

test-compiled: $(COMPILED_STAMP) ## Run the engine's tests on the compiled engine
	SLUICE_TESTED_BUILD=compiled $(COMPILED_PYTHON) -m pytest -n $(TEST_PROCESSES) --dist loadfile \
		-o pythonpath=. -o cache_dir=$(COMPILED)/pytest_cache $(ENGINE_TESTS) \
		tests/repo/test_compiled.py::test_this_run_tests_the_build_that_it_says $(PYTEST_ARGS)

check: $(STAMP) ## Lint, type check, layer contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

verify: $(STAMP) ## Regenerate what is generated and fail if anything changed
	$(BIN)/python -m sluice.cli.generate
	git diff --exit-code -- manifests docs
	test -z "$$(git ls-files --others --exclude-standard -- manifests docs)"

up: $(STAMP) ## Start an embedded control plane with Sluice in it and leave it running
	@$(BIN)/sluice up

control-plane: $(STAMP) ## Find the real etcd, kube-apiserver, ... or build them once (about six minutes)
	@$(BIN)/python -m sluice.local.real

# The names of programs; the other modules in benchmarks/ are what these import.
BENCHMARKS := engine topology comparison credits webhook status_writes throughput

bench: $(STAMP) ## Run the benchmarks and print their figures
	@for name in $(BENCHMARKS); do \
		script=benchmarks/bench_$$name.py; test -e $$script || script=benchmarks/$$name.py; \
		echo "== $$script"; $(BIN)/python $$script || exit 1; \
	done

bench-engine: $(STAMP) $(COMPILED_STAMP) ## Hold the engine, plain and compiled, to the ratios of benchmarks/budgets.toml
	$(BIN)/python benchmarks/bench_engine.py --check --trials 2

clean: ## Remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
