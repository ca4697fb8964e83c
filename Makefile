.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long chaos e2e bench bench-operator sbom lint programs format generate lock clean

PY := .venv/bin/python
# Processes that share the tests; each has its own broker, store and Spark session.
WORKERS ?= 3
SOURCES := $(wildcard crds sinkjob operator tools e2e charts deploy tests examples benchmarks)

help: ## List every command
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: ## Prepare this machine for everything below (quick if it is prepared)
	@tools/bootstrap.sh all
	@# Downloads wait for the network, builds for the cores: so both at the same time.
	@MAKEFLAGS= $(MAKE) --no-print-directory --jobs 2 part-s3 part-jars part-helm part-kubeconform

# The modules print progress lines only if there is something to download or build.
part-%:
	@$(PY) -m tools.parts.$* >/dev/null

demo: ## Copy a real Kafka topic into a real bucket, exactly once, and prove it
	@tools/bootstrap.sh all
	@$(MAKE) --no-print-directory part-jars
	@$(PY) -m examples.demo

test: setup ## Check and test everything, with a real broker, S3 server and API server
	@$(MAKE) --no-print-directory --jobs 2 lint programs
	@$(PY) -m pytest -n $(WORKERS) -m "not long" --durations=30

test-long: setup ## Test the whole matrix, of which make test has a sample (half an hour more)
	@$(MAKE) --no-print-directory programs
	@$(PY) -m pytest -n $(WORKERS) -m long --durations=30

chaos: setup ## Kill, freeze and disconnect a sink on real parts, and prove that it lost nothing (SEED=, MINUTES=10)
	@$(PY) -m tools.parts.class_archive
	@$(PY) -m tests.chaos --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

e2e: setup ## Test operator, driver and executors on a real Kubernetes (Docker, or root on Linux; 20 minutes)
	@$(PY) -m tools.cluster build >/dev/null
	@$(PY) -m tools.e2e

bench: setup ## Measure speed and memory, compared with the limit of Spark and Kafka (BENCH=--help shows options)
	@$(PY) -m benchmarks $(BENCH)

bench-operator: setup ## Measure the operator with 1,000 sinks on a real API server (BENCH=--help shows options)
	@$(PY) -m benchmarks.operator_bench $(BENCH)

sbom: setup ## Write the image's bill of materials to build/sbom.json, and check it (builds Syft once, some minutes)
	@mkdir -p build
	@$(PY) -m tools.image sbom >build/sbom.json
	@$(PY) -m pytest -q e2e/image

# Programs for tests, fetched or built once: the checks of style and types leave a core free for it.
programs: setup
	@$(PY) -m tools.parts.class_archive
	@$(PY) -m tools.cluster build --tier control >/dev/null
	@$(PY) -m tools.argocd.program >/dev/null
	@$(PY) -m tools.parts.registry >/dev/null
	@$(PY) -m tools.parts.jars --tests >/dev/null

lint: setup ## Check style, types and imports
	@.venv/bin/ruff check --quiet $(SOURCES)
	@.venv/bin/ruff format --quiet --check $(SOURCES)
	@.venv/bin/mypy --no-error-summary
	@.venv/bin/lint-imports --no-logo

format: setup ## Format the code
	@.venv/bin/ruff check --quiet --fix $(SOURCES)
	@.venv/bin/ruff format $(SOURCES)

generate: setup ## Write all generated files: definition, copies of the version, chart, Kustomize base, Argo CD's settings
	@mkdir -p build && $(PY) -m s3sink_api.definition >build/crd.yaml && mv build/crd.yaml crds/s3sinks.s3sink.dev.yaml
	@$(PY) -m tools.product_version
	@$(PY) -m charts.generate
	@$(PY) -m deploy.generate

lock: ## Choose versions and write requirements.lock, and go.mod and go.sum of tools/argocd
	@env -u PIP_FIND_LINKS -u UV_FIND_LINKS UV_CUSTOM_COMPILE_COMMAND="make lock" \
	  "$$(tools/bootstrap.sh uv)" pip compile --quiet --universal --generate-hashes --all-extras --upgrade \
	  --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-emit-build-options \
	  --output-file requirements.lock pyproject.toml
	@$(MAKE) --no-print-directory setup
	@$(PY) -m tools.argocd.lock

clean: ## Remove what was built here (the cache of downloads stays)
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist spark-warehouse
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
