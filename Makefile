# The two commands of the README, and what developers run. Each makes its own .venv where there is none: with an extra of
# pyproject.toml, in the versions of constraints.txt, as the sessions of noxfile.py.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
MINUTES ?= 30
NOTEBOOKS ?= short
# Without bytecode every process of a test compiles the sources of PyTorch, which takes 3 of its 6 seconds.
unexport PYTHONDONTWRITEBYTECODE
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

.PHONY: library wheel viewer demo test test-long test-slow fuzz campaigns mutants interop bench benchmark lint format docs gallery site release-check clean

demo: $(VENV)/.installed-train
	$(BIN)/echelon demo

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal --durations 40

test-long: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m 'long and not slow' -n auto --dist worksteal --durations 40

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m slow -n auto --dist worksteal

fuzz: $(VENV)/.installed-dev
	$(BIN)/python tests/fuzz.py --minutes $(MINUTES) -n auto

campaigns: $(VENV)/.installed-dev
	$(BIN)/python tests/campaigns/fuzz_battles.py --minutes $(MINUTES)
	$(BIN)/python tests/campaigns/kill_runs.py --minutes $(MINUTES)

mutants: $(VENV)/.installed-dev
	$(BIN)/python tests/mutants/run.py

interop: $(VENV)/.installed-dev
	$(BIN)/nox

# The library of machine code in the source tree, after an edit of a kernel.
library: $(VENV)/.installed-dev
	$(BIN)/python -m native

# A wheel with machine code for this machine; release-check builds those for all machines.
wheel: $(VENV)/.installed-dev
	$(BIN)/python -m build --wheel

# All files of a release in build/release, tried in fresh environments; the work tree must have no changes.
release-check: $(VENV)/.installed-dev
	$(BIN)/python .ci/release_check.py

# The viewer of replays, bundled into one file that is in git; it needs Node.
viewer: viewer/node_modules
	cd viewer && npm run --silent check && npm run --silent test && npm run --silent build

viewer/node_modules: viewer/package-lock.json
	cd viewer && npm ci --silent --no-audit --no-fund
	@touch $@

bench: $(VENV)/.installed-train
	$(BIN)/echelon bench

benchmark: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.installed-dev
	$(BIN)/python docs/generate.py

# The battles of docs/gallery as web pages: open build/gallery/index.html.
gallery: $(VENV)/.installed-dev
	$(BIN)/python docs/gallery.py pages build/gallery

# The documentation as a web site: open build/site/index.html. NOTEBOOKS=full executes the notebooks with their own
# parameters (an hour), none leaves their outputs out.
site: $(VENV)/.installed-docs
	$(BIN)/python -m docs.site --notebooks $(NOTEBOOKS)

clean:
	rm -rf $(VENV) .nox dist build viewer/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Echelon needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed-train: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing Echelon with its trainer into $(VENV) (a few minutes the first time)"
	$(PIP) -e ".[train]"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing Echelon with its trainer and test tools into $(VENV) (a few minutes the first time)"
	$(PIP) -e ".[dev]"
	@touch $@ $(VENV)/.installed-train $(VENV)/.installed-docs

$(VENV)/.installed-docs: $(VENV)/.created pyproject.toml constraints.txt
	@echo "Installing Echelon with what builds the documentation into $(VENV) (a few minutes the first time)"
	$(PIP) -e ".[docs]"
	@touch $@ $(VENV)/.installed-train
