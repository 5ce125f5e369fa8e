# `make` alone lists the targets. Everything is installed into .venv; each step leaves a stamp there, so that a second
# run has nothing to do. Needed: make and Python 3.11 or newer. Settings: PYTHON=..., JOBS=..., SOAK_MINUTES=...

PYTHON ?= python3
JOBS ?= 2
SOAK_MINUTES ?= 10

VENV := .venv
DEBUG_VENV := .venv-debug
DEBUG_FOLDERS := kernel engine sharding codecs property corrupt golden fuzz
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
BUILD_INPUTS := pyproject.toml $(wildcard setup.py setup.cfg rust/Cargo.toml rust/Cargo.lock rust/build.rs) \
	$(shell find rust/src -name '*.rs' 2>/dev/null)

# what decodes and encodes, which has to work without the native kernel, too
WITHOUT_KERNEL := $(addprefix tests/,api chunk_grids chunk_keys codecs corrupt engine golden indexing interop property \
	sharding) $(wildcard tests/test_*.py)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint types pytest test-debug servers bench soak clean

help: ## list the targets
	@echo "zardine: make <target>"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

demo: $(VENV)/.stamp-demo ## write, read and edit a real climate field as a sharded array, and coastlines as vectors
	@$(BIN)/python demo/demo.py
	@$(BIN)/python demo/vectors.py

test: lint types pytest ## run the whole suite: ruff, mypy, pytest

lint: $(VENV)/.stamp-test ## ruff, style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.stamp-test lint ## mypy, strict on src
	$(BIN)/mypy

servers: $(VENV)/.stamp-servers ## install the servers that the tests of stores talk to: Azurite (npm), nginx (apt)

pytest: $(VENV)/.stamp-test lint types ## the tests alone, after the checks, without and with the native kernel
	ZARDINE_KERNEL=0 $(BIN)/python -m pytest -n $(JOBS) $(WITHOUT_KERNEL)
	$(BIN)/python -m pytest -n $(JOBS)

test-debug: $(DEBUG_VENV)/.stamp-debug ## the tests near the kernel, built with overflow checks; needs cargo
	cargo test --quiet --locked --manifest-path rust/Cargo.toml
	$(DEBUG_VENV)/bin/python -m pytest -n $(JOBS) $(addprefix tests/,$(DEBUG_FOLDERS))

bench: ## measure zardine beside its peers; BENCH=--quick for a short look
	@$(PYTHON) benchmarks/run.py $(BENCH)

soak: $(VENV)/.stamp-test ## repeat the randomised tests with new seeds for SOAK_MINUTES
	@$(BIN)/python benchmarks/soak.py --minutes $(SOAK_MINUTES) --jobs $(JOBS)

clean: ## remove what the other targets made
	rm -rf $(VENV) $(DEBUG_VENV) build dist src/*.egg-info src/zardine/*.so rust/target
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf demo.zarr demo-unsharded.zarr demo.png coast.zv vectors.png
	find src tests demo benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# set-up

$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "zardine needs Python 3.11 or newer; '$(PYTHON)' is `$(PYTHON) --version 2>&1 || true`." >&2; \
	  echo "Name another one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); \
	  echo "Python could not make a virtual environment; on Debian and Ubuntu the package python3-venv is needed." >&2; \
	  exit 1; }
	$(PIP) install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.stamp-package: $(VENV)/.stamp-venv $(BUILD_INPUTS)
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/.stamp-demo: $(VENV)/.stamp-package
	$(PIP) install --quiet --group demo
	@touch $@

$(VENV)/.stamp-test: $(VENV)/.stamp-package
	$(PIP) install --quiet --group test
	@touch $@

# Azurite goes into .venv; nginx from Debian's packages, where that may be done. Without them their tests are skipped,
# or fail where CI=true.
$(VENV)/.stamp-servers: $(VENV)/.stamp-venv
	@command -v npm >/dev/null || { echo "npm is needed for Azurite" >&2; exit 1; }
	npm install --prefix $(VENV)/azurite --no-save --no-audit --no-fund --loglevel=error azurite@3.35.0
	@PATH="$$PATH:/usr/sbin" command -v nginx >/dev/null || { \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends nginx-light; } \
	  >/dev/null
	@touch $@

# A copy of the package in an environment of its own, so that the kernel in src stays as it is. Without a kernel, or with
# one that has no checks, the tests would be skipped, or prove nothing.
$(DEBUG_VENV)/.stamp-debug: $(BUILD_INPUTS) $(shell find src/zardine -name '*.py')
	@$(MAKE) --no-print-directory VENV=$(DEBUG_VENV) $(DEBUG_VENV)/.stamp-venv
	rm -rf build
	SETUPTOOLS_RUST_CARGO_PROFILE=dev $(DEBUG_VENV)/bin/python -m pip --disable-pip-version-check install --quiet .
	$(DEBUG_VENV)/bin/python -m pip --disable-pip-version-check install --quiet --group test
	@$(DEBUG_VENV)/bin/python -c 'import zardine; assert str(zardine.__kernel__).endswith("+debug"), zardine.__kernel__'
	@touch $@
