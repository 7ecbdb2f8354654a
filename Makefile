# `make forecast` and `make test` do all the set-up on a fresh machine.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
NATIVE := $(shell find torchcommodity/ops torchcommodity/opkit/include -name "*.cpp" -o -name "*.cu" -o -name "*.h")

.PHONY: forecast test check docs bench dev clean

forecast: $(VENV)/forecast  ## prices in, out/report.html out
	$(BIN)/torchcommodity forecast

test: $(VENV)/dev  ## every test, doctest and README block, a file per processor
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

check: $(VENV)/dev  ## formats, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)

docs: $(VENV)/dev  ## the site with its gallery, in build/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/dev  ## the table of speeds, against the peers, in one run
	$(BIN)/python benchmarks/run.py

dev: $(VENV)/dev  ## everything to work on the project, with the commit hooks
	$(BIN)/pre-commit install

clean:
	rm -rf $(VENV) build dist out *.egg-info torchcommodity/*.so

$(VENV)/torch: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0 numpy setuptools wheel ninja
	touch $@

$(VENV)/forecast: $(VENV)/torch pyproject.toml setup.py $(NATIVE)
	$(PIP) --no-build-isolation --editable '.[forecast]'
	touch $@

$(VENV)/dev: $(VENV)/forecast
	$(PIP) --no-build-isolation --editable '.[dev]'
	touch $@
