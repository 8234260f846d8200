# Every target works on a fresh clone: it creates .venv, installs what it needs at the versions
# in constraints.txt, and installs again only when the files that decide this have changed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
REQUIREMENTS := $(BIN)/python scripts/requirements.py
TESTS ?= tests --ignore=tests/docs

# Environment variables, because pip's --constraint does not reach isolated builds; the second
# is for the pip versions in which the first no longer reaches them either.
CONSTRAINTS := constraints.txt
export PIP_CONSTRAINT = $(CONSTRAINTS)
export PIP_BUILD_CONSTRAINT = $(CONSTRAINTS)

COMPILED := CMakeLists.txt $(wildcard src/regard/kernel/*.cpp src/regard/kernel/*.hpp)

.PHONY: help demo test test-long test-lowest check format docs mutants bench clean

help:
	@echo 'make demo         solve an exercise of the library before your eyes'
	@echo 'make test         run the tests; TESTS=tests/graph runs some of them'
	@echo 'make test-long    run the tests that take minutes'
	@echo 'make test-lowest  run the tests on the lowest versions that pyproject.toml admits'
	@echo 'make check        ruff, mypy --strict and the dependencies between rooms'
	@echo 'make format       let ruff rewrite what it can'
	@echo 'make mutants      break the kernel on purpose and see the tests go red'
	@echo 'make docs         run the code blocks of the documents, then build the site'
	@echo 'make bench        run every benchmark'
	@echo 'make clean        remove everything that these targets create'

demo: $(VENV)/installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh
	@$(MAKE) --no-print-directory $(VENV)/with-translate
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/translator.sh

test: $(VENV)/with-test
	$(BIN)/python -m pytest -n auto $(TESTS)

test-long: $(VENV)/with-test
	$(BIN)/python -m pytest -m long $(TESTS)

check: $(VENV)/with-check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports

format: $(VENV)/with-check
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/with-test $(VENV)/with-docs
	$(BIN)/python -m pytest tests/docs
	$(BIN)/python scripts/gallery.py docs/gallery
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

mutants: $(VENV)/with-test
	$(BIN)/python scripts/kernel_mutants.py

bench: $(VENV)/with-bench
	@for script in benchmarks/[!_]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) .venv-lowest build dist site .hypothesis .import_linter_cache \
		.mypy_cache .pytest_cache .ruff_cache

# --- Environments: each file marks what is installed ---------------------------------------

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"make: regard needs \
	Python 3.11 or newer, but $(PYTHON) is {sys.version.split()[0]}; name another: make PYTHON=…")'
	@echo 'Creating $(VENV) …'
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/created pyproject.toml constraints.txt $(COMPILED)
	@echo 'Installing regard into $(VENV) …'
	@$(INSTALL) --editable .
	@$(BIN)/python -m compileall -q src/regard
	@$(BIN)/python -c 'from regard import kernel; print(kernel.report().reason)'
	@touch $@

$(VENV)/with-test: EXTRAS := test exact figures torch dask parquet translate hf
$(VENV)/with-check: EXTRAS := check
$(VENV)/with-translate: EXTRAS := translate
$(VENV)/with-docs: EXTRAS := docs
$(VENV)/with-bench: EXTRAS := bench exact figures hf torch translate
$(VENV)/with-test $(VENV)/with-check $(VENV)/with-docs $(VENV)/with-bench $(VENV)/with-translate: \
		$(VENV)/installed scripts/requirements.py
	@echo 'Installing the extras: $(EXTRAS) …'
	@$(REQUIREMENTS) extras $(EXTRAS) > $@.txt
	@$(INSTALL) --requirement $@.txt
	@touch $@

# --- The lowest versions that pyproject.toml admits, without torch -------------------------

LOWEST := .venv-lowest

test-lowest: $(LOWEST)/installed
	$(LOWEST)/bin/python -m pytest -n auto $(TESTS)

$(LOWEST)/installed: CONSTRAINTS := $(LOWEST)/constraints.txt
$(LOWEST)/installed: $(VENV)/created pyproject.toml constraints.txt $(COMPILED) \
		scripts/requirements.py
	@echo 'Installing the lowest versions into $(LOWEST) …'
	@$(BIN)/python -m venv --clear $(LOWEST)
	@$(REQUIREMENTS) lowest > $(LOWEST)/constraints.txt
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable '.[exact,figures,test]'
	@touch $@
