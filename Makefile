# Trawl. `make` alone lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

GO ?= go
BIN := bin/trawl
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
CLI := github.com/trawl-search/trawl/cmd/trawl/internal/cli
LDFLAGS := -s -w -X $(CLI).version=$(VERSION) -X $(CLI).builtFrom=$(COMMIT)
BUF := $(GO) tool -modfile=tools/go.mod buf
GOTESTSUM := $(GO) tool -modfile=tools/go.mod gotestsum
LINT := $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

# The binary is static. Only the race detector needs cgo. One set of flags for everything, since the
# Go command compiles every package again for each set. Others, such as -run or -race, do not come in from outside.
export CGO_ENABLED := 0
FLAGS := -trimpath -buildvcs=false
export GOFLAGS := $(filter -mod=% -modcacherw -p=%,$(shell $(GO) env GOFLAGS)) $(FLAGS)

# The linter vets tests too, and binaries of tests need no tables for debuggers. VETTED is for
# modules that are not linted.
TIMEOUT ?= 60m
VETTED = $(GO) test $(JSON) -ldflags='-s -w' -timeout $(TIMEOUT)
GOTEST = $(VETTED) -vet=off

# Tests run the binary that is built here.
export TRAWL_TEST_BINARY := $(CURDIR)/$(BIN)

# Repository of `make demo` and `make run`: a path or URL. Empty means the
# source tree of the Go toolchain.
REPO ?=

##@ Try it

.PHONY: demo
demo: build ## Start everything, index a repository (REPO=path or URL), query it, stop
	@demo/run.sh "$(BIN)" demo "$(REPO)"

.PHONY: run
run: build ## The same, and stay up for queries of your own
	@demo/run.sh "$(BIN)" run "$(REPO)"

##@ Build

.PHONY: build
build: ## Build bin/trawl, the one static binary
	@$(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/trawl

# Base of the indexer's image: a Debian from a registry, or trawl-debian, which
# `make debian` makes without a registry.
BASE ?= debian:bookworm-slim

# Names of the images: $(PREFIX)-router:$(TAG) and so on.
PREFIX ?= trawl
TAG ?= $(VERSION)

# All files in an image have the commit's time.
CREATED ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo 1970-01-01T00:00:00Z)

.PHONY: images
images: build ## Build the images PREFIX-indexer, -searcher and -router:TAG
	@BIN="$(BIN)" PREFIX="$(PREFIX)" TAG="$(TAG)" VERSION="$(VERSION)" COMMIT="$(COMMIT)" CREATED="$(CREATED)" BASE="$(BASE)" tools/images/roles.sh

.PHONY: images-twice
images-twice: ## Build the images twice, and fail unless all layers are identical
	@PREFIX=trawl-twice BASE="$(BASE)" tools/images/twice.sh

# Version of the next release.
RELEASE := $(shell sed -n 's/^version: //p' charts/trawl/Chart.yaml)

.PHONY: release
release: ## Make the release of the last commit in dist/ (CONTRIBUTING.md)
	@VERSION="$(RELEASE)" tools/release/release.sh

.PHONY: release-twice
release-twice: ## Make the release twice, and fail unless both are identical
	@VERSION="$(RELEASE)" tools/release/twice.sh

.PHONY: debian
debian: ## Make the image trawl-debian, a BASE for the indexer, without a registry
	tools/images/debian.sh trawl-debian

# Writes the description of the HTTP interface to a file, given by its path relative to tools.
OPENAPI = rm -rf .cache/openapi && $(BUF) generate --template buf.gen.openapi.yaml && cd tools && $(GO) run ./openapi ../.cache/openapi

.PHONY: generate
generate: ## Generate the code of the protos, openapi.json and the references
	$(BUF) generate
	$(OPENAPI) ../docs/api/openapi.json
	$(GO) test -count=1 -run '^Test(Settings|Command)Reference$$' ./cmd/trawl/internal/cli -update
	@$(SUMS) > .cache/generated.sum && mv .cache/generated.sum proto/generated.sum

# Hashes of the inputs and outputs of code generation, and the versions of the generators.
SUMS = { for file in $$(find buf*.yaml proto tools/openapi docs/api/openapi.json -name '*.proto' -o -name '*.pb.go' -o -name '*.yaml' -o -path '*openapi*' -type f | LC_ALL=C sort); do \
	hash=$$(git hash-object $$file) || exit 1; echo "$$hash $$file"; done; grep -E '^\s(github.com/(bufbuild/buf|grpc-ecosystem/grpc-gateway/v2)|google.golang.org/(grpc/cmd/protoc-gen-go-grpc|protobuf)) ' tools/go.mod; }

.PHONY: clean
clean: ## Remove all build output
	rm -rf bin .cache dist trawl

##@ Prove

# Runs parts, and counts their tests: gotestsum reads the events that cat gets from prove.
PROVE = $(GO) build -o .cache/prove ./internal/prove && exec .cache/prove \
	$(GOTESTSUM) --format pkgname-and-test-fails --format-hide-empty-pkg --raw-command cat

.PHONY: test
test: ## Run what every change needs (15 minutes from nothing)
	@export TRAWL_TEST_ALL=; $(PROVE)

.PHONY: test-all
test-all: ## Run everything that proves the project (an hour); TRAWL_TEST_K8S=build adds Kubernetes, TRAWL_TEST_TERRAFORM=build Terraform
	@export TRAWL_TEST_ALL=1; $(PROVE)

# The binary that a target needs. In a run of prove a part of its own has built it, and nothing may replace it under running tests.
BUILT := $(if $(JSON),,build)

# What only `make test-all` does in a part that both have.
ALL := $(TRAWL_TEST_ALL)

# All packages but the end-to-end tests.
UNIT = $(shell $(GO) list ./... | grep -v /integration)

.PHONY: unit
unit: ## Run the tests of all packages but the end-to-end ones
	@$(GOTEST) $(if $(ALL),-count=1) $(UNIT)

.PHONY: check
check: check-generated lint unit ## Check generated code, run the linters, and run the unit tests

# Packages and tests that `make test` runs under the race detector. `make test-all` adds the short form of all tests outside of the index. The other
# tests of the index run on one goroutine each, and take very long under the detector.
RACE := internal/prove/race.txt
RACING = $(if $(ALL),$(shell $(GO) list ./internal/... ./services/... ./cmd/...))
RACE_PACKAGES = $(shell awk '/^\.$(if $(ALL),\/index)/ { print $$1 }' $(RACE) | sort -u)
RACE_TESTS = $(shell awk '/^\./ { print $$2 }' $(RACE) | paste -sd'|')

.PHONY: race
race: ## Run tests of what goroutines share under the race detector (needs a C compiler)
	@set -- $$(CGO_ENABLED=1 $(GO) env CC); if ! command -v "$$1" > /dev/null && [ "$$CI" != true ]; then \
		why='not run: the race detector needs a C compiler'; event='{"Action":"%s","Package":"make","Test":"race","Output":"%s"}\n'; \
		if [ -z "$(JSON)" ]; then echo "$$why" >&2; exit 1; fi; \
		printf "$$event" run '' output "$$why\\n" skip ''; exit; \
	fi; \
	export TRAWL_TEST_ALL= CGO_ENABLED=1; $(GOTEST) -race -run '^($(RACE_TESTS))$$' $(RACE_PACKAGES) && $(if $(RACING),$(GOTEST) -race $(RACING),:)

.PHONY: integration
integration: processes containers ## Run the end-to-end tests: processes, then containers

# The packages of end-to-end tests that need no containers.
PROCESSES = $(shell $(GO) list ./integration/... | grep -v '/integration/cluster$$')

.PHONY: processes
processes: $(BUILT) ## Run the end-to-end tests of roles as processes
	@TRAWL_TEST_K8S= TRAWL_TEST_TERRAFORM= $(GOTEST) -count=1 $(PROCESSES)

# The end-to-end tests in containers of `make test`.
CONTAINERS := ^(TestLinearizable|TestIndexAndSearch)$$

.PHONY: containers
containers: $(BUILT) ## Run the end-to-end tests on real servers in containers (needs Docker)
	@$(GOTEST) -count=1 $(if $(ALL),-skip '$(HOSTILE)',-run '$(CONTAINERS)') ./integration/cluster

# It shows what honest callers notice of an attack on two processors, so nothing else may run beside it.
HOSTILE := ^TestHostileCallers$$

.PHONY: hostile
hostile: $(BUILT) ## Attack a Trawl in 4 GiB in every way at once (needs Docker)
	@$(GOTEST) $(if $(JSON),,-v) -count=1 -run '$(HOSTILE)' ./integration/cluster

# The first run builds Kubernetes or OpenTofu.
e2e-k8s terraform-test: TIMEOUT = 100m

.PHONY: e2e-k8s
e2e-k8s: ## Test the Helm chart on a Kubernetes in containers (half an hour; the first run builds it)
	TRAWL_TEST_K8S=$(or $(TRAWL_TEST_K8S),build) $(GO) test $(or $(JSON),-v) -count=1 -timeout $(TIMEOUT) ./integration/k8s/...

# How long the soak lasts, as Go writes durations.
SOAK ?= 1h

.PHONY: soak
soak: build ## Record and judge histories of a cluster under faults for SOAK (1h)
	TRAWL_TEST_SOAK=$(SOAK) $(GO) test -v -count=1 -timeout 0 -run '^TestLinearizable$$' ./integration/cluster

.PHONY: terraform-test
terraform-test: ## Test the Terraform modules with OpenTofu (the first run builds it)
	TRAWL_TEST_TERRAFORM=build $(GO) test $(or $(JSON),-v) -count=1 -timeout $(TIMEOUT) -run TestModules ./integration/terraform

.PHONY: terraform-apply
terraform-apply: ## Apply and destroy the Terraform example on the cluster of KUBECONFIG, with the files VALUES
	TRAWL_TEST_TERRAFORM=build TRAWL_TEST_KUBECONFIG=$(KUBECONFIG) TRAWL_TEST_VALUES=$(VALUES) \
		$(GO) test -v -count=1 -timeout 100m -run TestApply ./integration/terraform

# Targets that `make test-fresh` runs.
FRESH ?= demo test

.PHONY: test-fresh
test-fresh: ## Run the targets FRESH (demo test) in a clone with empty caches
	@tools/fresh.sh $(FRESH)

.PHONY: chart-test
chart-test: $(BUILT) ## Render the Helm chart with many values and check the results
	@cd charts/test && $(VETTED) -count=1 .

.PHONY: tools-test
tools-test: $(BUILT) ## Test the tools: alerts and dashboards on real metrics, images, bills of materials
	@cd tools && $(VETTED) -count=1 ./...

.PHONY: charts
charts: ## Rewrite the golden files of the chart's tests, and the chart's README
	@cd charts/test && $(GO) test -count=1 -run 'TestGolden|TestReadmeIsCurrent' . -update

.PHONY: bench-test
bench-test: ## Test the benchmarks, which are a module of their own
	@cd bench && $(GOTEST) ./...

.PHONY: lint
lint: ## Run the linters of .golangci.yml, go vet among them
	@status=0; for module in . bench tools; do (cd $$module && $(LINT) run ./...) || status=1; done; exit $$status

.PHONY: check-sums
check-sums: ## Fail if protos or generated code changed since make generate
	@sums=$$($(SUMS)) || exit 1; echo "$$sums" | diff -u proto/generated.sum - || { echo "generated code is not current: run make generate"; exit 1; }

.PHONY: check-generated
check-generated: check-sums ## Generate again, and fail if the code is not current or a proto breaks a rule
	@$(BUF) lint
	@rm -rf .cache/generated && mkdir -p .cache/generated
	@$(BUF) generate --output .cache/generated
	@diff -ru --exclude='*.proto' --exclude='*_test.go' --exclude=third_party --exclude=generated.sum proto .cache/generated/proto \
		|| { echo "generated code is not current: run make generate"; exit 1; }
	@$(OPENAPI) ../.cache/generated/openapi.json
	@diff -u docs/api/openapi.json .cache/generated/openapi.json \
		|| { echo "docs/api/openapi.json is not current: run make generate"; exit 1; }

.PHONY: demo-short
demo-short: $(BUILT) ## The demo on a small generated repository
	@demo/run.sh "$(BIN)" short

# Expression for the mutations to try; empty: all.
export ONLY ?=

.PHONY: mutate
mutate: ## Break each promise by single lines; tests must notice (ONLY=expression for some)
	@$(GO) run ./internal/mutate $(if $(ONLY),-only "$$ONLY") $(if $(ALL),,-write docs/mutations.md)

# A number of inputs and no time: at the end of a time go test may fail by chance (golang/go#75804).
FUZZTIME ?= $(if $(ALL),20000x,100000x)
FUZZ ?= ./...
.PHONY: fuzz
fuzz: ## Try FUZZTIME inputs on each fuzz target of the packages FUZZ (all)
	@packages=$$($(GO) list $(FUZZ)) || exit 1; \
	for p in $$packages; do \
		found=$$($(GO) test -vet=off -list '^Fuzz' $$p) || exit 1; \
		for f in $$(echo "$$found" | grep '^Fuzz'); do \
			echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$p || exit 1; \
		done; \
	done

##@ Measure

# CORPUS is go, kubernetes, linux, mixed, unicode, modules, packed or all. BENCH has further flags.
# SERVED=1 measures a real `trawl up` next to zoekt-webserver instead of the engine.
CORPUS ?= go
BENCH ?=
SERVED ?=

.PHONY: bench
bench: bench-build ## Measure CORPUS next to the installed peers; SERVED=1: as callers see it
	@.cache/bench $(if $(SERVED),served) -corpus $(CORPUS) $(BENCH)

# The kinds of queries that are sampled for corpora without written ones.
KINDS := rare,mid,common,2 words,3 words,4 words,alternation,regex+literal,phrase,path + word,case,near-miss,1-2 chars
UNSEEN := .cache/unseen

.PHONY: bench-unseen
bench-unseen: bench-build ## Measure the program TRAWL next to zoekt on trees that nobody tuned to
	@.cache/bench served -trawl $(or $(TRAWL),.cache/trawl) -corpus $(UNSEEN)/eight,$(UNSEEN)/webkit,$(UNSEEN)/modules128 -keep .cache/zoekt \
		-buckets '$(KINDS)' -queries 8 -repeat 7 -timeout 10s -clients 64 -cold 0 -re2=false $(BENCH)

.PHONY: bench-lines
bench-lines: bench-build ## Measure which lines of a file are shown first, in the clones in REPOS (bench/README.md)
	@.cache/bench lines -repos $(or $(REPOS),.cache/repos) $(BENCH)

.PHONY: bench-relevance
bench-relevance: bench-build ## Measure how high the wanted file ranks, in the clones in REPOS (bench/README.md)
	@.cache/bench relevance -repos $(or $(REPOS),.cache/repos) $(BENCH)

.PHONY: bench-push
bench-push: bench-build ## Measure how long pushes to a copy of REPO (this one) take until they can be searched
	@.cache/bench push -repo $(or $(REPO),.) $(BENCH)

.PHONY: profile-index
profile-index: bench-build ## Write a CPU profile of indexing CORPUS
	@.cache/bench -corpus $(CORPUS) -profile index -profile-file .cache/index.prof $(BENCH)

.PHONY: profile-search
profile-search: bench-build ## Write a CPU profile of searching CORPUS
	@.cache/bench -corpus $(CORPUS) -profile search -profile-file .cache/search.prof $(BENCH)

.PHONY: figures
figures: ## Write the tables of docs/figures.md from bench/results
	@cd bench && $(GO) test -count=1 -run TestFiguresAreCurrent . -update

.PHONY: bench-build
bench-build: ## Build .cache/bench (bench/README.md) and the .cache/trawl that it measures
	@$(GO) build -o .cache/trawl ./cmd/trawl
	@cd bench && $(GO) build -o ../.cache/bench .

##@ Help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST); echo
