# make demo · make test: the two commands. The first run sets up .venv; PYTHON=/path/to/python chooses another Python.
# Paths are relative and tools run as `python -m`, so that a checkout may stand anywhere.
.PHONY: demo test test-all lint bench clean
.SILENT:

demo:
	sh tools/setup.sh test
	.venv/bin/python -m jitblas demo

test:
	sh tools/setup.sh test
	.venv/bin/python -m pytest

test-all:
	sh tools/setup.sh test
	.venv/bin/python -m pytest -m ""

lint:
	sh tools/setup.sh dev
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	.venv/bin/python -m mypy --strict
	find kernels_src \( -name '*.h' -o -name '*.cpp' -o -name '*.asc' \) \
		-exec .venv/bin/python -c 'import clang_format; clang_format.clang_format()' --dry-run -Werror {} +

bench:
	sh tools/setup.sh bench
	.venv/bin/python bench/run.py

clean:
	rm -rf .venv build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
	find cache -mindepth 1 -maxdepth 1 ! -name README.md -exec rm -rf {} +
