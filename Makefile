# Karmada: build, test, run. "make help" lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO ?= go
GO_MINOR := 26

# Everything except the race detector is built without cgo. Build, tests and lint share
# one build cache, and the programs run on any Linux.
export CGO_ENABLED := 0

# The programs contain no path of this machine, and no Git state except the values in
# LDFLAGS. Therefore two builds of a commit are identical on any machine. Build, tests
# and linters share one build cache, also across directories.
export GOFLAGS := $(strip $(filter-out -trimpath -buildvcs=%,$(GOFLAGS)) -trimpath -buildvcs=false)

MODULE := karmada.io/karmada
VERSION ?= $(shell tools/version)
# The embedded API servers report this version of Kubernetes to clients.
KUBERNETES := $(shell awk '$$1=="k8s.io/kubernetes" {print $$2}' go.mod)
KUBERNETES_MINOR := $(word 2,$(subst ., ,$(KUBERNETES)))
LDFLAGS := -s -w \
  $(foreach package,k8s.io/component-base k8s.io/client-go/pkg,\
    -X $(package)/version.gitVersion=$(KUBERNETES) -X $(package)/version.gitMajor=1 -X $(package)/version.gitMinor=$(KUBERNETES_MINOR)) \
  -X $(MODULE)/internal/version.gitVersion=$(VERSION) \
  -X $(MODULE)/internal/version.gitCommit=$(shell git rev-parse HEAD 2>/dev/null) \
  -X $(MODULE)/internal/version.gitTreeState=$(shell test -n "$$(git status --porcelain 2>/dev/null)" && echo dirty || echo clean) \
  -X $(MODULE)/internal/version.buildDate=$(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)

# The race detector needs a C compiler.
RACE = $(shell command -v $$($(GO) env CC) >/dev/null && echo -race)

GOLANGCI_LINT := $(GO) tool -modfile=tools/go.mod golangci-lint
INVENTORY := $(GO) -C tools build -o $(CURDIR)/bin/tools/inventory ./inventory && bin/tools/inventory

# The programs that `make build` builds.
PROGRAMS ?= $(notdir $(wildcard cmd/*))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

go-version:
	@command -v $(GO) >/dev/null || { echo "Go 1.$(GO_MINOR) or newer is needed and \"$(GO)\" was not found: https://go.dev/dl" >&2; exit 1; }
	@minor=$$($(GO) env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p'); [ "$${minor:-0}" -ge $(GO_MINOR) ] \
	  || { echo "Go 1.$(GO_MINOR) or newer is needed, found $$(cd / && $(GO) env GOVERSION): https://go.dev/dl" >&2; exit 1; }

build: go-version ## build all programs into bin/ (takes minutes the first time)
	@.ci/progress $(GO) build -v -ldflags '$(LDFLAGS)' -o bin/ $(addprefix ./cmd/,$(PROGRAMS))
	@echo "built: $(sort $(PROGRAMS))"

test: test-tools test-light test-heavy ## run all tests

# Before a test program with the race detector exits, it waits 1 second for races of goroutines that
# are still running. With about 130 packages that is a third of the time of all light tests.
export GORACE := $(or $(GORACE),atexit_sleep_ms=10)

# Without vet, because the linters run it.
TEST = bin/tools/gotestsum --jsonfile bin/tests/$(1).json --format $(2) -- -vet=off -shuffle=on

gotestsum:
	@mkdir -p bin/tools bin/tests
	@$(GO) build -modfile=tools/go.mod -o bin/tools/gotestsum gotest.tools/gotestsum

test-light: go-version gotestsum # see .ci/packages
	@packages=$$(.ci/packages light); export CGO_ENABLED=$(if $(RACE),1,0); \
	  .ci/progress $(GO) build -v $(RACE) $$($(GO) list -f '{{if .GoFiles}}{{.ImportPath}}{{end}}' $$packages); \
	  $(call TEST,light,pkgname) $(RACE) -timeout=10m $$packages

test-tools: go-version
	$(GO) -C tools test -shuffle=on ./...

test-heavy: go-version gotestsum # see .ci/packages
	@packages=$$(.ci/packages heavy); \
	  .ci/progress $(GO) build -v ./internal/standalone/... ./internal/testenv; \
	  $(call TEST,heavy,testname) -p 1 -timeout=45m $$packages

test-real: go-version ## install a control plane in real containers on this machine (needs root)
	@test/real/run

lint: go-version ## run the linters
	$(GOLANGCI_LINT) run
	@# The tools are a separate module.
	cd tools && $(GO) tool golangci-lint run ./...

generate: go-version ## regenerate all generated files
	tools/generate

verify: go-version ## check formatting, go.mod, licences, and that generated files are up to date
	@unformatted=$$(git ls-files -z '*.go' | xargs -0 gofmt -l); [ -z "$$unformatted" ] || { echo "not gofmt-ed:" $$unformatted >&2; exit 1; }
	$(GO) mod tidy -diff
	$(INVENTORY) licenses --check
	.ci/unchanged $(MAKE) generate

licenses: go-version ## write the licences of all linked modules to docs/licenses.md
	$(INVENTORY) licenses

sbom: build ## write an SBOM of each program into bin/sbom (CycloneDX)
	@$(INVENTORY) sbom $(VERSION) bin/sbom $(addprefix bin/,$(PROGRAMS))

vulncheck: build ## scan the programs for known vulnerabilities (needs vuln.go.dev)
	@failed=; for program in $(PROGRAMS); do echo "$$program:"; \
	  $(GO) tool -modfile=tools/go.mod govulncheck -mode=binary bin/$$program || failed="$$failed $$program"; done; \
	  [ -z "$$failed" ] || { echo "vulnerable, or not checked:$$failed" >&2; exit 1; }

# The platforms of the image, and the directory of its archives.
PLATFORMS ?= linux/amd64,linux/arm64
DIST ?= dist

images: go-version ## write the container image as OCI archives into dist/, without a container engine
	@$(GO) -C tools build -o $(CURDIR)/bin/tools/image ./image
	@# The tag of an image cannot contain the + of a version.
	@bin/tools/image --version '$(subst +,_,$(VERSION))' --ldflags '$(LDFLAGS)' --platforms '$(PLATFORMS)' --out '$(DIST)'

reproducible: go-version ## build the commit twice and compare the programs (PROGRAMS=karmadactl for one)
	@tools/reproducible $(PROGRAMS)

# karmada contains all programs, and is the program by whose name it is called. The links are hard
# links, which a later "go build" replaces instead of writing through them.
quick: go-version ## build one program into bin/, with links for the other names (the fastest first build)
	@.ci/progress $(GO) build -v -ldflags '$(LDFLAGS)' -o bin/ ./cmd/karmada
	@for name in $(filter-out karmada,$(notdir $(wildcard cmd/*))); do ln -f bin/karmada bin/$$name; done

up: quick ## start Karmada with two member clusters in this terminal
	bin/karmada up --members 2

demo: quick ## start Karmada with three members and propagate nginx to two of them
	bin/karmada demo

bench: build ## measure the propagation on this machine
	test/bench/run

bench-compare: ## compare the propagation of this build with that of the commit BASE
	test/bench/compare $(BASE)

clean: ## delete bin/ and dist/
	rm -rf bin dist

.PHONY: help go-version build quick gotestsum test test-tools test-light test-heavy test-real lint generate verify licenses sbom vulncheck images reproducible up demo bench bench-compare clean
