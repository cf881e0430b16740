# strait's targets; `make help` lists them. Everything here also works from a tarball: git is only
# used for the version, and the notes of a release.
SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.NOTPARALLEL:
.DEFAULT_GOAL := help

VERSION ?= $(or $(shell install/release/source.sh version),dev)
REVISION ?= $(shell install/release/source.sh revision)
# Where nodes get the image REGISTRY/strait, unless the user names another one.
REGISTRY ?= localhost
ARGS    ?=
FUZZTIME ?= 30s
KERNELS ?= 5.10 6.1 6.12 newest

# -buildvcs=false: -ldflags sets the version, and git refuses to work in another user's checkout.
GOBUILD = CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w -X main.version=$(VERSION) \
  -X main.revision=$(REVISION) -X strait.io/strait/install/chart.repository=$(REGISTRY)/strait'

# Runs one set of test packages. Each package with tests is in exactly one set.
GOTEST := test/setup/gotest.sh

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Use

.PHONY: build
build: check-go ## build bin/straitd and bin/strait
	@mkdir -p bin
	$(GOBUILD) -o bin/ ./cmd/straitd ./cmd/strait

# The container image. It holds only the programs, which are static.
IMAGE_REPOSITORY ?= $(REGISTRY)/strait
IMAGE_NAME ?= $(IMAGE_REPOSITORY):$(VERSION)
GOARCHES   ?= $(shell go env GOARCH)

.PHONY: image
image: check-go ## build bin/strait-image-ARCH.tar, a container image, without Docker; GOARCHES="amd64 arm64", IMAGE_REPOSITORY=registry.example/strait
	@for arch in $(GOARCHES); do \
	  mkdir -p bin/image/$$arch; \
	  GOARCH=$$arch $(GOBUILD) -o bin/image/$$arch/ ./cmd/straitd ./cmd/strait; \
	  go run -buildvcs=false ./install/image -arch $$arch -name '$(IMAGE_NAME)' -root bin/image/$$arch -entrypoint /straitd -o bin/strait-image-$$arch.tar; \
	done

.PHONY: sbom
sbom: image ## write bin/*.cdx.json: what straitd, strait and the image consist of (CycloneDX)
	@test/setup/sbom.sh '$(VERSION)' $(GOARCHES)

# A release. docs/release.md says what is in it.
RELEASE_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
RELEASE_URL       ?= https://strait.io/releases/$(VERSION)
RELEASE_KEY       ?=
RELEASE = VERSION='$(VERSION)' REVISION='$(REVISION)' REGISTRY='$(REGISTRY)' RELEASE_URL='$(RELEASE_URL)' \
  RELEASE_PLATFORMS='$(RELEASE_PLATFORMS)' RELEASE_KEY='$(RELEASE_KEY)' install/release/build.sh

.PHONY: release-programs
release-programs: check-go ## build only the programs of a release, into bin/release
	@$(RELEASE) check
	@rm -rf bin/release
	@for platform in $(RELEASE_PLATFORMS); do \
	  os=$${platform%/*} arch=$${platform#*/} programs=./cmd/strait; \
	  [ $$os != linux ] || programs+=' ./cmd/straitd'; \
	  mkdir -p bin/release/$$os-$$arch; \
	  GOOS=$$os GOARCH=$$arch $(GOBUILD) -o bin/release/$$os-$$arch/ $$programs; \
	done

.PHONY: release
release: release-programs ## write a release into dist/: VERSION=v0.1.0 REGISTRY=registry.example/team RELEASE_KEY=FILE; docs/release.md
	@$(RELEASE) assemble

.PHONY: push
push: check-go ## push the image and the chart of dist/ to REGISTRY=registry.example/team; PLAIN_HTTP=1 speaks HTTP
	@go run -buildvcs=false ./install/image/push -registry '$(REGISTRY)' $(if $(PLAIN_HTTP),-plain-http) dist/oci

.PHONY: demo
demo: build ## run the demo: three clusters on this machine, as root; ARGS="--keep" leaves them up
	bin/strait demo $(ARGS)

# Test

.PHONY: test
test: ## run all tests, whose steps and order test/setup/test.sh has; TEST_KUBE=0 skips test-kube, test-ops and test-cni
	@test/setup/test.sh

.PHONY: setup
setup: check-go ## install what the tests need (Debian or Ubuntu, as root), or say what is missing
	@test/setup.sh

.PHONY: compile
compile: check-go ## compile the packages for the race detector once, before parallel steps need them
	@$(GOTEST) compile

.PHONY: vet
vet: check-go ## run go vet
	go vet ./...

.PHONY: lint
lint: vet ## run go vet, staticcheck, gofmt, clang-format
	@test/setup/lint.sh

.PHONY: vulncheck
vulncheck: check-go ## look for known vulnerabilities in what the programs call; GOVULNDB=URL names a mirror of the database
	@test/setup/vulncheck.sh

.PHONY: arch
arch: check-go ## check who may import whom, package comments, file length
	@$(GOTEST) arch

.PHONY: unit
unit: check-go ## run the tests that need no privilege, with -race
	@$(GOTEST) unit

.PHONY: kernel
kernel: check-go ## run the tests with real maps, sockets and namespaces, with -race; needs root
	@$(GOTEST) kernel

.PHONY: script
script: check-go ## run test/script: YAML in; maps, peers and routes out; on fakes and, as root, on the kernel
	@$(GOTEST) script

.PHONY: e2e
e2e: build ## run the demo as a test: its JSON, its duration, and that it leaves nothing behind; needs root
	@$(GOTEST) e2e

.PHONY: web
web: build ## run the page of strait ui in Chromium, on the demo and on 10,000 services, and read the site; needs root
	@test/setup.sh chromium nftables
	@$(GOTEST) web

.PHONY: monitoring
monitoring: build ## ask every query of the dashboards of a Prometheus that scrapes the demo, and see alerts fire; needs root
	@test/setup.sh prometheus nftables curl
	@$(GOTEST) monitoring

.PHONY: many
many: check-go ## run sixty daemons in namespaces: what they send until each hears each, deaths, and a cluster that is cut off; needs root
	@$(GOTEST) many

.PHONY: diagnose
diagnose: check-go ## cause twenty faults, as root, and see each named within 10 s by status, check, a metric and the page, and cured
	@test/setup.sh nftables wireguard-tools
	@$(GOTEST) diagnose

MINUTES ?= 30

.PHONY: quiet
quiet: build ## see that no problem and no alert comes up while the demo changes all the time, for MINUTES=30; needs root
	@test/setup.sh prometheus nftables curl
	STRAIT_QUIET_MINUTES='$(MINUTES)' go test -count=1 -vet=off -timeout 0 -v -run '^TestQuiet$$' ./test/monitoring

TIMES ?= 20

.PHONY: repeat
repeat: check-go ## repeat one package's tests on a busy machine: PKG=./datapath/socklb RUN=TestStorm TIMES=20 LOAD=4
	@test/setup/repeat.sh '$(PKG)' '$(RUN)' '$(TIMES)' $(LOAD)

.PHONY: test-vm
test-vm: check-go ## run the kernel tests on Debian's kernels in VMs; KERNELS="5.10 6.1" selects
	@test/setup.sh qemu-system-x86 xz-utils
	go run -buildvcs=false ./test/vm/run -kernels '$(KERNELS)' $(ARGS)

.PHONY: bench
bench: check-go ## measure the datapath, 7 minutes, as root; BENCH_JSON=FILE, BENCH_DOC=docs/benchmarks.md, BENCH_QUICK=1; BENCH_KUBE=1 also measures 10,000 Services in Kubernetes
	@test/setup.sh nftables clang-19
	go run -buildvcs=false ./test/bench

# The Debian packages that the lab's nodes need.
KUBE_PACKAGES := runc containernetworking-plugins iptables conntrack nftables busybox-static netcat-openbsd socat curl bind9-dnsutils
KUBE_LAB      := go run -buildvcs=false ./test/kubelab/run -dir .lab
CLUSTERS      ?= 2
NODES         ?= 2

.PHONY: kube-lab
kube-lab: build image ## run real Kubernetes clusters on this machine, joined by strait, as root; CLUSTERS=3 NODES=2; the first run builds Kubernetes, 20 minutes
	@test/setup.sh $(KUBE_PACKAGES)
	@$(KUBE_LAB) up -clusters $(CLUSTERS) -nodes $(NODES) -strait bin/strait \
	  -image bin/strait-image-$(shell go env GOARCH).tar -name '$(IMAGE_NAME)' $(ARGS)

.PHONY: kube-lab-import
kube-lab-import: check-go ## load an image on all nodes of the lab: IMAGE=file.tar
	@$(KUBE_LAB) import '$(IMAGE)'

.PHONY: kube-lab-down
kube-lab-down: check-go ## take the lab down; only the built programs stay
	@$(KUBE_LAB) down

.PHONY: kube-programs
kube-programs: check-go ## build Kubernetes' programs for the lab into the user's cache; 20 minutes the first time
	@test/setup.sh $(KUBE_PACKAGES)
	@go run -buildvcs=false ./test/kubelab/run build

.PHONY: test-kube
test-kube: kube-programs ## run the tests on real API servers and clusters, as root, but for those of test-ops
	@$(GOTEST) kube

.PHONY: test-ops
test-ops: kube-programs ## run TestOps of test/kube, which upgrades, stops and kills strait on real clusters, as root
	@test/setup.sh prometheus
	@$(GOTEST) ops

.PHONY: test-cni
test-cni: kube-programs ## run strait beside flannel, as root; CNI=all also beside kube-router and Cilium, 50 minutes; CNI="c1=cilium,c2=ptp" beside others
	@test/setup.sh ipset clang-19
	@STRAIT_TEST_CNI='$(CNI)' $(GOTEST) cni

.PHONY: conformance
conformance: ## run the MCS API's own suite on the lab of make kube-lab: CONFORMANCE_BIN=its test binary; docs/conformance.md
	@test -x "$(CONFORMANCE_BIN)" || { echo "make conformance: set CONFORMANCE_BIN to the suite's test binary; docs/conformance.md says how to build it" >&2; exit 2; }
	@test -e .lab/kubeconfig || { echo "make conformance: no lab is up: run make kube-lab first" >&2; exit 2; }
	@mkdir -p bin/conformance
	cd bin/conformance && '$(abspath $(CONFORMANCE_BIN))' -kubeconfig '$(CURDIR)/.lab/kubeconfig' -contexts c1,c2 \
	  -organization strait -project strait -url https://strait.io -version '$(VERSION)' -test.timeout 30m -ginkgo.v $(ARGS)

.PHONY: fuzz
fuzz: check-go ## run each fuzz target for FUZZTIME (30s)
	@test/setup/fuzz.sh $(FUZZTIME)

.PHONY: fuzz-check
fuzz-check: check-go ## give each fuzz target 200 random inputs: it works, and its seeds pass
	@nice test/setup/fuzz.sh 200x

.PHONY: test-fresh
test-fresh: check-go ## run make demo and make test in a bare Debian with only Go; needs root and debootstrap
	@test/fresh.sh demo test

# Change

.PHONY: generate
generate: check-go ## rebuild the eBPF objects from bpf/ (clang 19), and the page of strait ui from web/
	@test/setup/generate.sh

.PHONY: generate-check
generate-check: check-go ## rebuild the eBPF objects in a copy and compare
	@test/setup/generate.sh --check

# The documentation for browsers: a folder for each version, which can be served from any place or opened.
SITE  ?= site
FILES ?=

.PHONY: site
site: check-go ## build the pages of docs for browsers into site/VERSION, beside other versions; FILES=https://example.com/strait/blob/v1.2.3/ links to files
	@hugo=$$(test/setup/tool.sh hugo) && \
	  go run -buildvcs=false ./docs/site -hugo "$$hugo" -version '$(VERSION)' -out '$(SITE)' -files '$(FILES)'

.PHONY: clean
clean: ## remove what was built in this checkout
	rm -rf bin dist site .demo

.PHONY: check-go
check-go: ## check that Go is installed and new enough, and say what to do if not
	@test/setup/go.sh
