# The front door. Every target first installs what is missing (scripts/setup, apt).
.DEFAULT_GOAL := all
.PHONY: check-fresh deb check-deb bench-node all check check-vm check-faults check-kubernetes demo bench bench-relay bench-api bench-control bench-dataplane bench-migrate lint asan tsan fuzz install setup clean check-sim

PREFIX ?= /usr/local
DESTDIR ?=
JOBS ?= $(shell nproc)

setup:
	@scripts/setup

# $(call build,DIR,MESON OPTIONS): configures once, compiles, and lays the programs out as an
# installation has them: DIR/bin, DIR/lib/ferry.
define build
	@[ -f $(1)/build.ninja ] || meson setup $(1) $(2) >/dev/null || { cat $(1)/meson-logs/meson-log.txt; exit 1; }
	@ninja -C $(1) -j $(JOBS) >$(1)/ninja.log 2>&1 || { cat $(1)/ninja.log; exit 1; }
	@scripts/stage $(1)
endef

all: setup
	$(call build,build,-Dbuildtype=release)

asan: setup
	$(call build,build-asan,-Db_sanitize=address$(comma)undefined -Db_lundef=false)

tsan: setup
	$(call build,build-tsan,-Db_sanitize=thread -Db_lundef=false)
	scripts/run-tests build-tsan --suite unit --suite threads

check: asan
	scripts/run-tests build-asan

# Moves of real guests that take too long for every check.
check-vm: asan
	scripts/run-tests build-asan --suite vm --suite vm-slow

# One thing broken at one instant of a move, for every phase and every fault; hours. What has passed is kept in
# build-asan/faults.jsonl and not run again, so it may be interrupted; docs/faults.md is written from it.
check-faults: asan
	tests/faults/run.py build-asan/bin --into build-asan/faults.jsonl --page docs/faults.md

# Against a real kube-apiserver and kube-scheduler, which are built first if need be (tests/kubernetes/get-assets);
# where they cannot be, the tests are skipped.
check-kubernetes: asan
	@tests/kubernetes/get-assets >/dev/null || tests/kubernetes/get-assets --have || true
	scripts/run-tests build-asan --suite kubernetes

# From nothing: README's two commands in a minimal Debian 12 and a minimal Debian 13, made for it and taken away again. Takes most of an
# hour; FRESH=trixie for one of them.
FRESH ?= bookworm trixie
check-fresh:
	scripts/check-fresh $(FRESH)

demo: all
	scripts/demo build

lint: setup
	tools/lint

# Thousands of random histories of the controllers over virtual time; a failing seed is printed and replays exactly.
SEEDS ?= 5000
check-sim: all
	build/tests/sim/sim --from 1 --count $(SEEDS)

bench: bench-relay bench-api bench-control bench-node bench-dataplane bench-migrate

bench-relay: all
	@scripts/setup --bench
	bench/relay.py build

# ferry-apiserver, beside kube-apiserver and etcd where tests/kubernetes/get-assets has made them.
bench-api: all
	bench/api.py build

# The controller with 10,000 migrations queued: speed, writes, memory; what a decision costs.
bench-control: all
	bench/control.py build

# Moves of a real guest over shaped links, beside libvirt alone and libvirt through socat. Takes about half an hour.
bench-dataplane: all
	@scripts/setup --bench
	@rm -f build/dataplane.jsonl
	bench/dataplane.py build --part queue --delay 10 --runs 3 --into build/dataplane.jsonl >/dev/null
	bench/dataplane.py build --into build/dataplane.jsonl

# Moves from the migration object to their end, beside libvirt alone and through KubeVirt's proxy, ten rounds of each. Takes more than
# an hour; ROUNDS=0.3 makes it a third of that.
ROUNDS ?= 1
bench-migrate: all
	@scripts/setup --bench
	@rm -f build/migrate.jsonl
	bench/migrate.py build --rounds $(ROUNDS) --into build/migrate.jsonl

# What an idle node costs, how fast a VM starts and how fast a cancelled move is gone.
bench-node: all
	bench/node.py build

fuzz: setup
	tools/fuzz

install: setup
	@[ -f build/build.ninja ] || meson setup build -Dbuildtype=release --prefix=$(PREFIX) >/dev/null
	@meson configure build -Dprefix=$(PREFIX) && ninja -C build -j $(JOBS) >/dev/null
	DESTDIR=$(DESTDIR) meson install -C build --no-rebuild

# One package with everything, for the Debian that this is.
deb: setup
	@[ -f build-deb/build.ninja ] || meson setup build-deb -Dbuildtype=release -Dtests=false --prefix=/usr >/dev/null
	@ninja -C build-deb -j $(JOBS) >build-deb/ninja.log 2>&1 || { cat build-deb/ninja.log; exit 1; }
	@scripts/deb build-deb dist

# The package, installed, upgraded and removed over an overlay of this machine.
check-deb: deb
	tests/deb/test_deb.py build-deb

clean:
	rm -rf build build-* dist

comma := ,
