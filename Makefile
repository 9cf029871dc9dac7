# SPDX-License-Identifier: Apache-2.0
# On a fresh machine, `make demo` and `make test` do everything. `make help` lists the rest.
#
#   PYTHON=python3.12   the interpreter that the virtual environment is made from (3.11 or later)
#   VENV=.venv          where it is
#   VENV_FLAGS=...      for `python -m venv`; --system-site-packages makes use of what a machine without a network has
#   TORCH=              leaves PyTorch out of `make test` (its tests are then skipped)
#   ARGS=...            more arguments for pytest
#   JOBS=2              so many tests at a time
# setup.py says which variables steer the C build.

PYTHON ?= python3
VENV ?= .venv
TORCH ?= torch==2.13.0

PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check -q
PYTEST := $(PY) -m pytest
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
SPREAD := -n $(JOBS) --dist worksteal
C_FILES = $(shell find csrc -name '*.c' -o -name '*.h')

# NVRTC is only worth its 60 MB to the demo where there is a GPU.
HAS_GPU := $(wildcard /dev/nvidia0)
EXTRA := $(if $(HAS_GPU),[cuda],)

.DEFAULT_GOAL := build
.PHONY: help build demo test quick asan ubsan refleak oom fuzz golden bench docs stubs reference format check wheel clean ext

help:
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | expand -t 10

# The environment. Each stamp is one step; a step is done again when what it depends on changes.

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tirx needs Python 3.11 or later; say PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV_FLAGS) $(VENV)
	$(PIP) install "setuptools>=77" wheel "numpy>=2.0"
	@touch $@

$(VENV)/.installed: $(VENV)/.made setup.py pyproject.toml
	$(PIP) install --no-build-isolation -e ".$(EXTRA)"
	@touch $@

$(VENV)/.test: $(VENV)/.installed tests/constraints.txt
	$(PIP) install --no-build-isolation -c tests/constraints.txt -e ".[cuda,test]"
	test -z "$(TORCH)" || $(PY) -c "import torch" 2>/dev/null || $(PIP) install "$(TORCH)"
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(PIP) install --no-build-isolation -e ".[dev]" "pytest>=8"
	@touch $@

# The extension, in place under tirx/: setup.py recompiles only what changed.
ext: $(VENV)/.installed
	@$(PY) setup.py -q build_ext --inplace

build: ext ## the environment and the extension, in place

demo: ext ## examples/quickstart.py, on a GPU if there is one
	$(PY) examples/quickstart.py

test: $(VENV)/.test ext ## the whole suite
	$(PYTEST) $(SPREAD) $(ARGS)

quick: $(VENV)/.test ext ## the fast part of the suite; for every commit
	$(PYTEST) -q -x -m "not slow and not torch" $(ARGS)

# The core under AddressSanitizer and UndefinedBehaviorSanitizer, with assertions and the verifier on, in a tree of its own.
# PyTorch's tests are left out: its libraries do not run under a preloaded libasan.
SANITIZERS = $(foreach l,libasan.so libubsan.so libstdc++.so,$(realpath $(shell $(CC) -print-file-name=$(l))))
ASAN_TESTS ?= tests
asan: $(VENV)/.test ## the suite under ASan and UBSan
	rm -rf build/asan
	TIRX_SANITIZE=1 TIRX_DEBUG=1 $(PY) -W ignore setup.py -q build --build-lib build/asan
	LD_PRELOAD="$(SANITIZERS)" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONMALLOC=malloc \
	PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/asan TIRX_EXPECT_BUILD=$(CURDIR)/build/asan \
	$(PY) -X faulthandler -m pytest -m "not torch and not slow and not nosanitize" $(SPREAD) $(ASAN_TESTS) $(ARGS)

ubsan: asan ## the same run

refleak: $(VENV)/.test ext ## references and memory that grow with repetition
	TIRX_LEAK_REPEAT=300 $(PYTEST) tests/test_refleak.py $(ARGS)

# Every allocation of a compilation made to fail in turn, in a build with assertions.
oom: $(VENV)/.test ## allocation failures
	rm -rf build/debug
	TIRX_DEBUG=1 $(PY) -W ignore setup.py -q build --build-lib build/debug
	TIRX_OOM_ALL=1 PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/build/debug TIRX_EXPECT_BUILD=$(CURDIR)/build/debug $(PYTEST) tests/test_oom.py $(ARGS)

FUZZ_SECONDS ?= 60
fuzz: $(VENV)/.test ext ## random programs and hostile text, FUZZ_SECONDS for each fuzzer; checkers on long kernels, 8 seeds
	TIRX_FUZZ_SECONDS=$(FUZZ_SECONDS) TIRX_PAIR_SEEDS=8 $(PYTEST) tests/fuzz tests/emu/test_pairs.py \
		tests/emu/test_deletions.py tests/emu/test_schedules.py $(ARGS)

golden: $(VENV)/.test ext ## write the expected texts under tests/golden anew; look at the diff before you commit it
	TIRX_GOLDEN=write $(PYTEST) -q -m "not slow" $(ARGS)
	git --no-pager diff --stat -- tests/golden

bench: $(VENV)/.test ext ## every bench/bench_*.py
	set -e; for f in bench/bench_*.py; do echo "== $$f"; $(PY) $$f; done

docs: $(VENV)/.test ext ## run every example of README.md and docs/
	$(PYTEST) -q tests/test_docs.py $(ARGS)

format: $(VENV)/.dev ## clang-format and ruff's safe fixes
	$(if $(C_FILES),$(VENV)/bin/clang-format -i $(C_FILES))
	$(VENV)/bin/ruff check -q --fix .

stubs: $(VENV)/.installed ext ## what type checkers know of T, written anew from the tables
	$(PY) tools/stubs.py

reference: $(VENV)/.installed ext ## docs/reference.md, written anew from the program
	$(PY) tools/reference.py

check: $(VENV)/.dev ## format, lint, types of the examples, and which folder includes which
	$(if $(C_FILES),$(VENV)/bin/clang-format --dry-run -Werror $(C_FILES))
	$(VENV)/bin/ruff check .
	$(VENV)/bin/basedpyright
	$(PY) tests/structure.py

wheel: $(VENV)/.made ## dist/*.whl, for CPython 3.11 and later
	rm -rf build/lib* build/bdist* dist
	$(PIP) wheel --no-build-isolation --no-deps -w dist .
	@ls -l dist

clean: ## everything built, and the environment
	rm -rf build dist *.egg-info $(VENV) tirx/_core*.so .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
