.DEFAULT_GOAL := help
.PHONY: help setup demo test chaos e2e bench bench-operator sbom lint programs format generate lock clean

PY := .venv/bin/python
# Processes that share the tests, folder by folder; each has its own broker, store and session.
WORKERS ?= 2
SOURCES := $(wildcard sinkjob operator e2e charts tests examples benchmarks)

help: ## List every command
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: ## Make this machine ready for everything below (quick when it is)
	@e2e/bootstrap.sh all
	@# Fetching waits for the network, building for the cores: side by side.
	@MAKEFLAGS= $(MAKE) --no-print-directory --jobs 2 part-s3 part-jars part-helm part-kubeconform

# Progress lines come from the modules themselves, and only when there is something to fetch or build.
part-%:
	@$(PY) -m e2e.parts.$* >/dev/null

demo: ## Copy a real Kafka topic into a real bucket, exactly once, and prove it
	@e2e/bootstrap.sh all
	@$(MAKE) --no-print-directory part-jars
	@$(PY) -m examples.demo

test: setup ## Check and test everything, against a real broker, S3 server and API server
	@$(MAKE) --no-print-directory --jobs 2 lint programs
	@$(PY) -m pytest -n $(WORKERS) --durations=20

chaos: setup ## Kill, freeze and cut off a sink on real parts, then prove it lost nothing (SEED=, MINUTES=10)
	@$(PY) -m e2e.parts.classes
	@$(PY) -m tests.chaos --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

e2e: setup ## Operator, driver and executors on a real Kubernetes (Docker, or root on Linux; about 20 minutes)
	@$(PY) -m e2e.cluster build >/dev/null
	@$(PY) -m e2e.chain

bench: setup ## Measure speed and memory beside the limit of Spark and Kafka (BENCH=--help shows options)
	@$(PY) -m benchmarks $(BENCH)

bench-operator: setup ## Measure the operator with 1,000 sinks on a real API server (BENCH=--help shows options)
	@$(PY) -m benchmarks.control $(BENCH)

sbom: setup ## Write what the image is made of to build/sbom.json, and check it (builds Syft once, some minutes)
	@mkdir -p build
	@$(PY) -m e2e.image sbom >build/sbom.json
	@$(PY) -m pytest -q e2e/image

# What tests need and is built once: checks of style and types leave a core free for it.
programs: setup
	@$(PY) -m e2e.parts.classes
	@$(PY) -m e2e.cluster build --tier control >/dev/null
	@$(PY) -m e2e.parts.gitops >/dev/null

lint: setup ## Check style, types and the rooms' imports
	@.venv/bin/ruff check --quiet $(SOURCES)
	@.venv/bin/ruff format --quiet --check $(SOURCES)
	@.venv/bin/mypy --no-error-summary
	@.venv/bin/lint-imports --no-logo

format: setup ## Put the code into its standard form
	@.venv/bin/ruff check --quiet --fix $(SOURCES)
	@.venv/bin/ruff format $(SOURCES)

generate: setup ## Write every file anew that is made from others: definition, chart, Kustomize base, Argo CD's settings
	@mkdir -p build && $(PY) -m s3sink_operator.crd >build/crd.yaml && mv build/crd.yaml crds/s3sinks.s3sink.dev.yaml
	@$(PY) -m charts.generate
	@$(PY) -m e2e.gitops

lock: ## Choose versions anew and write requirements.lock, and go.mod and go.sum of the part of Argo CD
	@env -u PIP_FIND_LINKS -u UV_FIND_LINKS UV_CUSTOM_COMPILE_COMMAND="make lock" \
	  "$$(e2e/bootstrap.sh uv)" pip compile --quiet --universal --generate-hashes --all-extras --upgrade \
	  --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-emit-build-options \
	  --output-file requirements.lock pyproject.toml
	@$(MAKE) --no-print-directory setup
	@$(PY) -m e2e.gitops.lock

clean: ## Remove what was made here (the cache of downloaded parts stays)
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist spark-warehouse
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
