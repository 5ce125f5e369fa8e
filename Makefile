# `make` alone lists the targets. Everything is installed into .venv; each step leaves a stamp there, so that a second
# run has nothing to do. Needed: make and Python 3.11 or newer. Settings: PYTHON=..., JOBS=..., SOAK_MINUTES=...
# A Python 3.13 or 3.12 beside it gets an environment of its own, .venv-latest, with the newest zarr-python.

PYTHON ?= python3
JOBS ?= 2
SOAK_MINUTES ?= 10

# Compiled Python is kept beside its sources, also where a setting forbids it: the tests start thousands of processes.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
LATEST_VENV := .venv-latest
DEBUG_VENV := .venv-debug
DEBUG_FOLDERS := kernel engine sharding codecs property corrupt golden fuzz
BIN := $(VENV)/bin
# one more than there are cores: tests wait for servers, disks and the processes that they start
PYTEST := python -m pytest -n $(shell echo $$(($(JOBS) + 1))) --dist worksteal
PIP := $(BIN)/python -m pip --disable-pip-version-check
BUILD_INPUTS := pyproject.toml $(wildcard setup.py setup.cfg rust/Cargo.toml rust/Cargo.lock rust/build.rs) \
	$(shell find rust/src -name '*.rs' 2>/dev/null)

# what the kernel decodes and encodes where it is there, and Python does without it
WITHOUT_KERNEL := $(wildcard $(addprefix tests/,corrupt engine golden property sharding codecs/test_blosc.py \
	interop/test_documents.py api/test_creation.py test_buffered_values.py test_older_formats.py \
	test_output_arrays.py test_resize_and_append.py test_kernel_present.py))
# what touches other programs, and the public API
WITH_LATEST := $(wildcard $(addprefix tests/,api docs interop programs zarr_python xarray dask ome test_async_nodes.py \
	test_attributes.py test_config.py test_hierarchy.py test_kernel_present.py test_public_names.py \
	test_representations.py))

CRATE := --manifest-path rust/Cargo.toml
# Rust and C with AddressSanitizer, in a folder of their own. (gcc takes what zstd's -fmerge-all-constants makes of tables
# for variables out of scope.)
ASAN_FLAGS := -fsanitize=address -fno-sanitize-address-use-after-scope -fno-omit-frame-pointer
ASAN := CFLAGS="$(ASAN_FLAGS)" CXXFLAGS="$(ASAN_FLAGS)" RUSTFLAGS=-Zsanitizer=address \
	PYO3_PYTHON="$(CURDIR)/$(BIN)/python"
ASAN_TARGET := --target x86_64-unknown-linux-gnu --target-dir rust/target/asan
# with cargo the native kernel is part of the package
KERNEL := $(if $(shell command -v cargo),native,none)
step = printf '\n== %s (about %s)\n' '$(1)' '$(2)'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test lint types rust-checks asan pytest without-kernel latest test-debug servers bench count soak mutants clean

help: ## list the targets
	@echo "zardine: make <target>"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  \1\t\2/p' Makefile | expand -t 18

demo: $(VENV)/.stamp-demo $(VENV)/.stamp-neurons ## write, read and edit a climate field as an array, coastlines and neurons as vectors
	@$(call step,A climate field: written; read; edited; checked; drawn,4 s)
	@$(BIN)/python demo/demo.py
	@$(call step,Coastlines: written; read; coarsened; checked; drawn,6 s)
	@$(BIN)/python demo/vectors.py
	@$(call step,Neurons and synapses: written; read by box and id; coarsened; checked; drawn,6 s)
	@$(BIN)/python demo/neurons.py $(VENV)/neurons/navis/data
	@$(BIN)/zardine --version

# mypy and parts of what cargo does are of one thread, and installing waits for the network
test: $(VENV)/.stamp-test ## run the whole suite: ruff, mypy, cargo, pytest on two Pythons
	@$(MAKE) --no-print-directory -j$(JOBS) types rust-checks \
	  $$(.ci/newer-python >/dev/null && echo $(LATEST_VENV)/.stamp-latest)
	@$(MAKE) --no-print-directory without-kernel
	@$(MAKE) --no-print-directory latest
	@$(MAKE) --no-print-directory pytest

lint: $(VENV)/.stamp-test ## ruff, style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.stamp-test lint ## mypy, strict on src
	$(BIN)/mypy

rust-checks: export MAKEFLAGS = # cargo cannot take part in the jobs of make
rust-checks: $(VENV)/.stamp-package ## style, clippy and tests of the native kernel, where cargo is
	@if command -v cargo >/dev/null; then \
	  set -ex; cargo fmt --check $(CRATE); \
	  PYO3_PYTHON="$(CURDIR)/$(BIN)/python" cargo clippy --release --locked --quiet $(CRATE) --all-targets \
	    --features python,pyo3/extension-module -- -D warnings; \
	  cargo test --release --locked --quiet $(CRATE); \
	else \
	  echo "##### NOT TESTED: the native kernel, which takes Rust's cargo (https://rustup.rs). #####" >&2; \
	fi

asan: $(VENV)/.stamp-test ## the tests of the native kernel, in Rust and in Python, with AddressSanitizer; needs Rust nightly
	@cargo +nightly --version >/dev/null 2>&1 || { \
	  echo "AddressSanitizer takes a nightly Rust toolchain: rustup toolchain install nightly" >&2; exit 1; }
	@test -e "$$(gcc -print-file-name=libasan.so)" || { \
	  echo "AddressSanitizer takes gcc and its libasan" >&2; exit 1; }
	$(ASAN) cargo +nightly test --locked --quiet $(CRATE) $(ASAN_TARGET)
	$(ASAN) cargo +nightly build --locked --quiet $(CRATE) $(ASAN_TARGET) --features python,pyo3/extension-module
	rm -rf rust/target/asan/python && mkdir -p rust/target/asan/python && cp -r src/zardine rust/target/asan/python
	cp rust/target/asan/x86_64-unknown-linux-gnu/debug/libzardine_kernel.so \
	  rust/target/asan/python/zardine/_kernel.abi3.so
	PYTHONPATH=rust/target/asan/python ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16 \
	  LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	  $(BIN)/python -m pytest -n 0 tests/kernel tests/property/test_kernel_equals_python.py

servers: $(VENV)/.stamp-servers ## install what the tests talk to: Azurite, zarrita.js and axe (npm), neuroglancer (pip), nginx and Chromium (apt)

without-kernel: $(VENV)/.stamp-test ## the tests of what the native kernel does, without it
	ZARDINE_KERNEL=0 $(BIN)/$(PYTEST) $(WITHOUT_KERNEL)

latest: $(VENV)/.stamp-package ## the tests beside other programs, on Python 3.13 or 3.12 with the newest of them
	@if .ci/newer-python >/dev/null; then \
	  $(MAKE) --no-print-directory $(LATEST_VENV)/.stamp-latest && \
	  $(LATEST_VENV)/bin/python -m pip list 2>/dev/null | grep -E '^(zarr|xarray|dask|numpy) ' && \
	  $(LATEST_VENV)/bin/$(PYTEST) $(WITH_LATEST); \
	elif [ "$$CI" = true ]; then \
	  echo "There is neither a Python 3.13 nor a 3.12 here, which the tests beside other programs need." >&2; exit 1; \
	else \
	  echo "##### NOT TESTED with the newest zarr-python, xarray and Dask: no Python 3.13 or 3.12 here. #####" >&2; \
	fi

pytest: $(VENV)/.stamp-test ## all tests, with the native kernel
	$(BIN)/$(PYTEST)

test-debug: $(DEBUG_VENV)/.stamp-debug ## the tests near the kernel, built with overflow checks; needs cargo
	cargo test --quiet --locked --manifest-path rust/Cargo.toml
	$(DEBUG_VENV)/bin/$(PYTEST) $(addprefix tests/,$(DEBUG_FOLDERS))

bench: ## measure zardine beside its peers; BENCH=--quick for a short look
	@$(PYTHON) benchmarks/run.py $(BENCH)

count: ## count the code by folder, members stored, entries of the kernel, methods of Store
	@$(PYTHON) benchmarks/count.py

soak: $(VENV)/.stamp-test ## campaigns in full, then again with new seeds, and a mutation run, for SOAK_MINUTES each
	@$(BIN)/python benchmarks/soak.py --minutes $(SOAK_MINUTES) --jobs $(JOBS)
	@$(BIN)/python benchmarks/known_mutants.py --jobs $(JOBS)
	@$(BIN)/python benchmarks/mutants.py --minutes $(SOAK_MINUTES) --jobs $(JOBS)

mutants: $(VENV)/.stamp-test ## put faults into the code and print those that no test finds; MUTANTS="--help" for more
	@$(BIN)/python benchmarks/mutants.py --jobs $(JOBS) $(MUTANTS)

clean: ## remove what the other targets made
	rm -rf $(VENV) $(LATEST_VENV) $(DEBUG_VENV) build dist src/*.egg-info src/zardine/*.so rust/target
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf demo.zarr demo-unsharded.zarr demo.png coast.zv vectors.png neurons.zv synapses.zv neurons.png
	find src tests demo benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# set-up

$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "zardine needs Python 3.11 or newer; '$(PYTHON)' is `$(PYTHON) --version 2>&1 || true`." >&2; \
	  echo "Name another one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(call step,A virtual environment in $(VENV),6 s)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  rm -rf $(VENV); \
	  echo "Python could not make a virtual environment; on Debian and Ubuntu the package python3-venv is needed." >&2; \
	  exit 1; }
	$(PIP) install --quiet --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.stamp-package: $(VENV)/.stamp-kernel-$(KERNEL)
	@touch $@

# Installed anew where cargo has come or gone: there is one of these stamps at a time.
$(VENV)/.stamp-kernel-$(KERNEL): $(VENV)/.stamp-venv $(BUILD_INPUTS)
	@$(call step,zardine$(if $(filter native,$(KERNEL)), and its native kernel: compiling C and Rust),$(if $(filter \
	  native,$(KERNEL)),60 s on two cores,15 s))
	$(PIP) install --quiet --editable .
	@$(BIN)/zardine --version
	@rm -f $(VENV)/.stamp-kernel-* && touch $@

$(VENV)/.stamp-demo: $(VENV)/.stamp-package
	@$(call step,What the demonstration needs: HDF5; Matplotlib; two data sets,10 s)
	$(PIP) install --quiet --group demo
	@touch $@

# Of this package only the files of data are used, so that nothing that it needs is installed.
$(VENV)/.stamp-neurons: $(VENV)/.stamp-package
	$(PIP) install --quiet --no-deps --upgrade --target $(VENV)/neurons navis==1.12.0
	@touch $@

$(VENV)/.stamp-test: $(VENV)/.stamp-package
	$(PIP) install --quiet --group test
	@touch $@

# The package is the one in src, as the other environment has built it: the kernel is for every Python from 3.11 on.
$(LATEST_VENV)/.stamp-latest: pyproject.toml .ci/newer-python
	rm -rf $(LATEST_VENV)
	"$$(.ci/newer-python)" -m venv $(LATEST_VENV)
	$(LATEST_VENV)/bin/python -m pip --disable-pip-version-check install --quiet --upgrade 'pip>=25.1'
	$(LATEST_VENV)/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], \
	  sep="\n")' >$(LATEST_VENV)/requirements.txt
	$(LATEST_VENV)/bin/python -m pip --disable-pip-version-check install --quiet --group latest \
	  --requirement $(LATEST_VENV)/requirements.txt
	echo "$(CURDIR)/src" >"$$($(LATEST_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/zardine.pth"
	@touch $@

# Azurite, zarrita.js and axe go into .venv; nginx and Chromium come from Debian's packages, where that may be done. Without
# them their tests are skipped, or fail where CI=true.
$(VENV)/.stamp-servers: $(VENV)/.stamp-venv
	@command -v npm >/dev/null || { echo "npm is needed for Azurite, zarrita.js and axe" >&2; exit 1; }
	npm install --prefix $(VENV)/azurite --no-save --no-audit --no-fund --loglevel=error azurite@3.35.0
	npm install --prefix $(VENV)/zarrita --no-save --no-audit --no-fund --loglevel=error zarrita@0.7.5
	npm install --prefix $(VENV)/axe --no-save --no-audit --no-fund --loglevel=error axe-core@4.11.0
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/neuroglancer neuroglancer==2.41.2
	@command -v chromium >/dev/null || { \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium fonts-dejavu-core; } \
	  >/dev/null
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
