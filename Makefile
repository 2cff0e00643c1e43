# The front door; `make help` lists it. Every target first installs what is missing (scripts/setup, apt).
.DEFAULT_GOAL := all
# What stands behind ## is the target's line in `make help`, a line that begins with ## a heading of it.
.PHONY: help setup all demo install deb release clean check lint check-vm check-faults check-kubernetes check-kvm check-sim check-deb check-fresh asan \
	tsan fuzz bench bench-relay bench-api bench-control bench-dataplane bench-migrate bench-node

PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)

help: ## this list
	@awk -F ':.*## ' '/^## /{printf "\n%s\n", substr($$0, 4)} /^[a-z][a-z-]*:.*## /{printf "  make %-18s %s\n", $$1, $$2}' Makefile

comma := ,
# $(call build,DIR,MESON OPTIONS): configures once, compiles, and lays the programs out as an
# installation has them: DIR/bin, DIR/lib/ferry.
define build
	@[ -f $(1)/build.ninja ] || meson setup $(1) $(2) >/dev/null || { cat $(1)/meson-logs/meson-log.txt; exit 1; }
	@ninja -C $(1) -j $(JOBS) >$(1)/ninja.log 2>&1 || { cat $(1)/ninja.log; exit 1; }
	@scripts/stage $(1)
endef

## Build and use

setup: ## install what building, running and testing need, by apt
	@scripts/setup

all: setup ## a release build in build/ (what `make` alone does)
	$(call build,build,-Dbuildtype=release)

demo: all ## two nodes on this machine: a move that is watched, a cut network, post-copy, a drain
	scripts/demo build

install: setup ## into PREFIX (/usr/local), below DESTDIR
	@[ -f build/build.ninja ] || meson setup build -Dbuildtype=release --prefix=$(PREFIX) >/dev/null
	@meson configure build -Dprefix=$(PREFIX) && ninja -C build -j $(JOBS) >/dev/null
	DESTDIR=$(DESTDIR) meson install -C build --no-rebuild

# One package with everything, for the Debian that this is.
deb: setup ## one Debian package with everything, in dist/
	@[ -f build-deb/build.ninja ] || meson setup build-deb -Dbuildtype=release -Dtests=false --prefix=/usr >/dev/null
	@ninja -C build-deb -j $(JOBS) >build-deb/ninja.log 2>&1 || { cat build-deb/ninja.log; exit 1; }
	@scripts/deb build-deb dist

# What a version is published as (docs/releasing.md): the tarball, the package, their parts and their checksums.
release: setup ## tarball, package, checksums and list of parts of this version, in dist/
	@scripts/release check
	@$(MAKE) --no-print-directory deb
	@scripts/release make dist

clean: ## remove all builds
	rm -rf build build-* dist

## Test

check: asan ## all tests
	scripts/run-tests build-asan

lint: setup ## all that can be said about the source without running it
	tools/lint

check-vm: asan ## many moves of real guests, every way to steer one
	scripts/run-tests build-asan --suite vm --suite vm-slow

# One thing broken at one instant of a move, for every phase and every fault; hours. What has passed is kept in
# build-asan/faults.jsonl and not run again, so it may be interrupted; docs/faults.md is written from it.
check-faults: asan ## one thing broken at one instant of a move, for every phase and fault; hours
	tests/faults/run.py build-asan/bin --into build-asan/faults.jsonl --page docs/faults.md

check-kvm: asan ## all tests with guests that this machine's hardware runs, and a report to send
	scripts/check-kvm build-asan

# Against a real kube-apiserver and kube-scheduler, which are built first if need be (tests/kubernetes/get-assets);
# where they cannot be, the tests are skipped.
check-kubernetes: asan ## against a real kube-apiserver and kube-scheduler
	@tests/kubernetes/get-assets >/dev/null || tests/kubernetes/get-assets --have || true
	scripts/run-tests build-asan --suite kubernetes

# Thousands of random histories of the controllers over virtual time; a failing seed is printed and replays exactly.
SEEDS ?= 5000
check-sim: all ## thousands of random histories of the controllers (SEEDS=5000)
	build/tests/sim/sim --from 1 --count $(SEEDS)

check-deb: deb ## the package, installed, upgraded and removed over an overlay
	tests/deb/test_deb.py build-deb

# From nothing: README's two commands in a minimal Debian 12 and a minimal Debian 13, made for it and taken away again. Takes most of an
# hour; FRESH=trixie for one of them.
FRESH ?= bookworm trixie
check-fresh: ## README's two commands in a minimal Debian 12 and 13, from nothing
	scripts/check-fresh $(FRESH)

asan: setup ## a build with ASan and UBSan in build-asan/
	$(call build,build-asan,-Db_sanitize=address$(comma)undefined -Db_lundef=false)

tsan: setup ## the threaded parts under ThreadSanitizer
	$(call build,build-tsan,-Db_sanitize=thread -Db_lundef=false)
	scripts/run-tests build-tsan --suite unit --suite threads

fuzz: setup ## each fuzz target under libFuzzer
	tools/fuzz

## Measure

bench: bench-relay bench-api bench-control bench-node bench-dataplane bench-migrate ## all of the following; hours

bench-relay: all ## the relay beside other TLS relays
	@scripts/setup --bench
	bench/relay.py build

# ferry-apiserver, beside kube-apiserver and etcd where tests/kubernetes/get-assets has made them.
bench-api: all ## the API server beside kube-apiserver and etcd
	bench/api.py build

bench-control: all ## the controller with 10,000 migrations queued
	bench/control.py build

# Moves of a real guest over shaped links, beside libvirt alone and libvirt through socat. Takes about half an hour.
bench-dataplane: all ## moves over shaped links, beside libvirt alone; half an hour
	@scripts/setup --bench
	@rm -f build/dataplane.jsonl
	bench/dataplane.py build --part queue --delay 10 --runs 3 --into build/dataplane.jsonl >/dev/null
	bench/dataplane.py build --into build/dataplane.jsonl

# Moves from the migration object to their end, beside libvirt alone and through KubeVirt's proxy, ten rounds of each. Takes more than
# an hour; ROUNDS=0.3 makes it a third of that.
ROUNDS ?= 1
bench-migrate: all ## moves end to end, beside virsh; an hour (ROUNDS=0.3 for a third)
	@scripts/setup --bench
	@rm -f build/migrate.jsonl
	bench/migrate.py build --rounds $(ROUNDS) --into build/migrate.jsonl

bench-node: all ## what an idle node costs
	bench/node.py build
