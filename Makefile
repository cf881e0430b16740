# strait's targets; `make help` lists them. Everything here works from a tarball too: git is asked for
# the version and for nothing else.
SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

VERSION ?= $(shell test -e .git && git describe --tags --always --dirty 2>/dev/null || echo dev)
ARGS    ?=
FUZZTIME ?= 30s
KERNELS ?= 5.10 6.1 6.12 newest

# -buildvcs=false: the version is given below, and git refuses to answer in a checkout of another user.
GOBUILD := CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

# Runs one set of test packages; the sets share none and leave none out.
GOTEST := test/setup/gotest.sh

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Use

.PHONY: build
build: check-go ## build bin/straitd and bin/strait
	@mkdir -p bin
	$(GOBUILD) -o bin/ ./cmd/straitd ./cmd/strait

# Of the container image. Its programs are static, so that it needs nothing else in it.
IMAGE_REPOSITORY ?= localhost/strait
IMAGE_NAME ?= $(IMAGE_REPOSITORY):$(VERSION)
GOARCHES   ?= $(shell go env GOARCH)

.PHONY: image
image: check-go ## bin/strait-image-ARCH.tar, a container image without Docker; GOARCHES="amd64 arm64", IMAGE_REPOSITORY=registry.example/strait
	@for arch in $(GOARCHES); do \
	  mkdir -p bin/image/$$arch; \
	  GOARCH=$$arch $(GOBUILD) -o bin/image/$$arch/ ./cmd/straitd ./cmd/strait; \
	  go run -buildvcs=false ./install/image -arch $$arch -name '$(IMAGE_NAME)' -root bin/image/$$arch -entrypoint /straitd -o bin/strait-image-$$arch.tar; \
	  echo "bin/strait-image-$$arch.tar holds $(IMAGE_NAME)"; \
	done

.PHONY: demo
demo: build ## three clusters on this machine, as root; ARGS="--keep" leaves them up
	bin/strait demo $(ARGS)

# Test

.PHONY: test
test: ## all tests: setup, build, e2e, lint, arch, unit, generate-check, then kernel and script beside test-kube; TEST_KUBE=0 leaves the last out
	@test/setup/test.sh

.PHONY: setup
setup: check-go ## install what the tests need (Debian or Ubuntu, as root), or say what is missing
	@test/setup.sh

.PHONY: compile
compile: check-go ## compile what the tests use for the race detector, once, before steps that need it run side by side
	@$(GOTEST) compile

.PHONY: vet
vet: check-go ## go vet
	go vet ./...

.PHONY: lint
lint: vet ## go vet, staticcheck, gofmt, clang-format
	@test/setup/lint.sh

.PHONY: arch
arch: check-go ## who may import whom, package comments, file length
	@$(GOTEST) arch

.PHONY: unit
unit: check-go ## tests that need no privilege, with -race
	@$(GOTEST) unit

.PHONY: kernel
kernel: check-go ## tests with real maps, sockets and namespaces, with -race; need root
	@$(GOTEST) kernel

.PHONY: script
script: check-go ## test/script: YAML in, maps, peers and routes out; on fakes and, as root, on the kernel
	@$(GOTEST) script

.PHONY: e2e
e2e: build ## the demo as a test: its JSON, its time, and that it leaves nothing behind; needs root
	@$(GOTEST) e2e

TIMES ?= 20

.PHONY: repeat
repeat: check-go ## one package's tests many times on a busy machine: PKG=./datapath/socklb RUN=TestStorm TIMES=20 LOAD=4
	@test/setup/repeat.sh '$(PKG)' '$(RUN)' '$(TIMES)' $(LOAD)

.PHONY: test-vm
test-vm: check-go ## kernel tests on Debian's kernels in VMs; KERNELS="5.10 6.1" selects
	@test/setup.sh qemu-system-x86 xz-utils
	go run -buildvcs=false ./test/vm/run -kernels '$(KERNELS)' $(ARGS)

.PHONY: bench
bench: check-go ## measure the datapath, 3 minutes, as root; BENCH_JSON=FILE, BENCH_DOC=docs/benchmarks.md, BENCH_QUICK=1; BENCH_KUBE=1: 10,000 Services in Kubernetes too
	@test/setup.sh nftables
	go run -buildvcs=false ./test/bench

# Debian's packages that the lab's nodes need.
KUBE_PACKAGES := runc containernetworking-plugins iptables conntrack nftables busybox-static netcat-openbsd socat curl bind9-dnsutils
KUBE_LAB      := go run -buildvcs=false ./test/kubelab/run -dir .lab
CLUSTERS      ?= 2
NODES         ?= 2

.PHONY: kube-lab
kube-lab: build image ## real Kubernetes clusters on this machine, joined by strait, as root; CLUSTERS=3 NODES=2; the first time builds them, 15 minutes
	@test/setup.sh $(KUBE_PACKAGES)
	@$(KUBE_LAB) up -clusters $(CLUSTERS) -nodes $(NODES) -strait bin/strait \
	  -image bin/strait-image-$(shell go env GOARCH).tar -name '$(IMAGE_NAME)' $(ARGS)

.PHONY: kube-lab-import
kube-lab-import: check-go ## load an image on all nodes of the lab: IMAGE=file.tar
	@$(KUBE_LAB) import '$(IMAGE)'

.PHONY: kube-lab-down
kube-lab-down: check-go ## take the lab down; nothing of it stays but the built programs
	@$(KUBE_LAB) down

.PHONY: kube-programs
kube-programs: check-go ## build Kubernetes' programs for the lab into the user's cache: 15 minutes the first time
	@test/setup.sh $(KUBE_PACKAGES)
	@go run -buildvcs=false ./test/kubelab/run build

.PHONY: test-kube
test-kube: kube-programs ## tests on real API servers and clusters, as root
	@$(GOTEST) kube

.PHONY: conformance
conformance: ## the MCS API's own suite on the lab that make kube-lab left: CONFORMANCE_BIN=its test binary; docs/conformance.md
	@test -x "$(CONFORMANCE_BIN)" || { echo "make conformance: set CONFORMANCE_BIN to the suite's test binary; docs/conformance.md says how to build it" >&2; exit 2; }
	@test -e .lab/kubeconfig || { echo "make conformance: there is no lab: run make kube-lab first" >&2; exit 2; }
	@mkdir -p bin/conformance
	cd bin/conformance && '$(abspath $(CONFORMANCE_BIN))' -kubeconfig '$(CURDIR)/.lab/kubeconfig' -contexts c1,c2 \
	  -organization strait -project strait -version '$(VERSION)' -test.timeout 30m -ginkgo.v $(ARGS)

.PHONY: fuzz
fuzz: check-go ## each fuzz target for FUZZTIME (30s)
	@test/setup/fuzz.sh $(FUZZTIME)

.PHONY: test-fresh
test-fresh: check-go ## make demo and make test in a bare Debian with only Go; needs root and debootstrap
	@test/fresh.sh demo test

# Change

.PHONY: generate
generate: check-go ## rebuild the eBPF objects from bpf/ (clang 19)
	@test/setup/generate.sh

.PHONY: generate-check
generate-check: check-go ## rebuild the eBPF objects elsewhere and compare
	@test/setup/generate.sh --check

.PHONY: clean
clean: ## remove what was built here
	rm -rf bin .demo

.PHONY: check-go
check-go: ## say in one line what to do where Go is missing or too old
	@test/setup/go.sh
