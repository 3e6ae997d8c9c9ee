# Fullpipe from a checkout. Needs Python 3.11 or newer, stable Rust and make; all else is installed into .venv.
#
#   make demo      runs BBR and CUBIC on one path, simulated and over this machine's own TCP; the report is in out/demo
#   make test      checks formats, lints and types, and runs the tests of both languages but the long ones
#   make test-long the long tests: those that compile copies of the sources, or make thousands of runs
#   make test-all  both
#   make lint      checks formats, lints and types only
#   make docs      makes the tables of the documentation from the evidence in results/, and the site in out/docs
#   make equal-builds  shows that the worlds sim and quic give the results of an earlier build, so that their evidence stays current
#   make lab       builds the lab, the page that simulates in the browser, so that `fullpipe lab` opens it; needs node and npm,
#                  and Rust's library for wasm32: rustup's, or Debian's (apt install rustc-web cargo-web rust-web-src lld-19)
#   make test-lab  checks the lab: lints, types, unit tests, that its numbers are those of the command line, and the page in
#                  a browser (CHROMIUM=/usr/bin/chromium)
#   make quic      builds the world `quic`, real QUIC endpoints in virtual time, for `--world quic`
#   make test-quic checks it: formats, lints and tests of quic/, and what Python's tests need the stacks for
#   make test-s2n  downloads over s2n-quic with our controllers; compiles a library in C for minutes
#   make stack-smoltcp, stack-quiche, stack-tquic, stack-s2n, stack-ngtcp2, stack-aioquic, stack-quicgo, stack-netstack  builds
#                  an adapter, which brings another stack into the world `quic`; .venv/bin/stack-smoltcp is then one for --stack
#   make mistakes  makes known mistakes one at a time, and shows that the tests catch each
#   make differential  gives the same random events to Linux's C code and to our controllers, and compares after each;
#                  needs Linux's source (apt install linux-source gcc); EVENTS=1000000 for a short run
#   make bpf-objects  compiles our controllers for Linux kernels into crates/bpf/objects; needs Debian's clang-22, llvm-22, rustc-web,
#                  cargo-web and libstd-rust-web-dev-bpf
#   make audit     checks licences and sources by cargo-deny, and the oldest Rust by cargo-hack, where they are installed
#   make package   packages the crates that others can use, builds them from their packages, and with Rust 1.88, their oldest
#   make wheel     builds what others install into dist/: wheels for any Linux with glibc 2.17 or newer, and a source distribution
#   make test-wheel  installs it into an empty environment, and uses it where no checkout is
#   make lock      renews requirements/*.txt, the versions and hashes of the Python packages that these targets install
#   make instructions  counts instructions a packet with callgrind; fails where there are 2 % more than bench/instructions.json has
#   make bench     runs the benchmarks
#   make clean     removes what the other targets made

PYTHON ?= python3
DEMO_DURATION ?= 10 s

VENV := .venv
BIN := $(VENV)/bin
CARGO_TARGET := $(or $(CARGO_TARGET_DIR),target)
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --quiet
# Locked versions come by uv where it is installed, which is faster.
UV := $(shell command -v uv)
LOCKED = $(if $(UV),$(UV) pip install --quiet --python,$(1) -m pip install --disable-pip-version-check --quiet) \
	$(if $(UV),$(1)) --require-hashes -r

# The packages beside the core, which are pure Python. What the second one depends on is installed with the tools that check it.
PACKAGES := ./packages/studies
DEV_PACKAGES := ./packages/gym

# Each stamp is newer than everything it depends on, so that a second call does nothing.
TOOLS := $(VENV)/.stamp-tools
PACKAGE := $(VENV)/.stamp-package
DEV := $(VENV)/.stamp-dev

# The site of the documentation. Its tools have an environment of their own, which sees what is installed in the other one.
SITE_VENV := .venv-docs
SITE_TOOLS := $(SITE_VENV)/.stamp
SITE := out/docs

LAB_TOOLS := lab/node_modules/.stamp
LAB_SITE := python/fullpipe/cli/site
CHROMIUM ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

# What the program with the QUIC stacks is made of. It is no part of the Python module: the other targets neither need nor
# change it.
QUIC := $(BIN)/fullpipe-quic
# Its crates are a workspace of their own. Its folder's .cargo/config.toml has the flags that make its runs repeatable.
QUIC_CARGO := cd quic/world && CARGO_TARGET_DIR="$(abspath $(CARGO_TARGET))/quic" cargo
QUIC_SOURCES := $(shell find quic crates/units crates/cc crates/path crates/export crates/files crates/scenario crates/record \
	-type d -name target -prune -o \( -name '*.rs' -o -name Cargo.toml -o -name Cargo.lock -o -name config.toml \) -print)

SOURCES := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find crates -type d -name target -prune -o \( -name '*.rs' -o -name '*.[ch]' -o -name Cargo.toml \) -print) \
	$(shell find python packages scenarios -type f ! -path '*/shipped/*' ! -name '*.pyc' ! -name '*.so' ! -name 'vega-*.js' ! -name 'THIRD-PARTY-NOTICES.txt')

# When a step of `make test` began.
BEGUN = @echo "== $@ ($$(date -u +%H:%M:%S))"

# Makes cargo and pip build for the same interpreter, and puts maturin on the path.
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help demo docs equal-builds test test-all test-long lint lint-rust lint-python lint-citations test-rust test-no-std test-bpf \
	test-kernel test-python bpf-objects test-s2n \
	lab lab-engine lab-site \
	lab-installed test-lab bench-lab quic test-quic stack-smoltcp stack-quiche stack-tquic stack-s2n stack-ngtcp2 \
	stack-aioquic stack-quicgo stack-netstack mistakes differential audit package wheel test-wheel test-sdist check-elsewhere test-windows lock \
	instructions bench clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(PACKAGE)
	$(BIN)/fullpipe compare bbr1 cubic --rate "100 Mbit/s" --rtt "40 ms" --buffer "1 bdp" \
		--duration "$(DEMO_DURATION)" --world all --out out/demo
	@echo "The report: $(CURDIR)/out/demo/report.html"

# Those of the kernel world mostly wait for packets: what `.ci/run` compiles ahead for later tests, it compiles then.
test: lint test-kernel test-rust test-no-std test-bpf test-python
test-all: test test-long

lint: lint-rust lint-python lint-citations

# Clippy's lint `incompatible_msrv` compares what our crates call of the standard library with their `rust-version`.
lint-rust: $(TOOLS)
	$(BEGUN)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked $(addprefix -p ,$(CRATES))

# The last line checks the hand-written stubs of the native module against the module.
lint-python: $(DEV)
	$(BEGUN)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest fullpipe._native

# Every requirement of BBRv3's draft is cited where it is implemented and where it is tested.
lint-citations: $(TOOLS)
	$(BIN)/python tests/citations/citations.py check

# The tables of the documentation, from the evidence in results/, and the site. With the lab, if `make lab` has built it.
docs: $(DEV) $(SITE_TOOLS)
	$(BIN)/python docs/tables.py
	$(SITE_VENV)/bin/python -m sphinx -W --keep-going --fresh-env --quiet -b html -d $(SITE_VENV)/doctrees docs $(SITE)
	@echo "The site: $(CURDIR)/$(SITE)/index.html"

# Whether a small sample of runs gives the same summaries as the build that it is from.
equal-builds: $(DEV)
	$(BIN)/python docs/equal_builds.py

# In the dev profile, for its overflow checks and debug assertions.
test-rust: $(TOOLS)
	$(BEGUN)
	cargo test --workspace --locked

# The controllers must build without std and without an allocator, the driver for QUIC stacks without std.
test-no-std: $(TOOLS)
	$(BEGUN)
	cargo build --manifest-path crates/cc/tests/no_std/Cargo.toml --target-dir $(CARGO_TARGET)/no-std
	cargo build --manifest-path quic/driver/tests/no_std/Cargo.toml --target-dir $(CARGO_TARGET)/no-std

# BBRv3 must compile to what BPF has: no product of 128 bits, no float, no signed division, no loop, no panic.
test-bpf: $(TOOLS)
	$(BEGUN)
	$(BIN)/python crates/cc/tests/bpf/check.py --target-dir $(CARGO_TARGET)/bpf
	$(BIN)/python crates/cc/tests/bpf/check.py --target-dir $(CARGO_TARGET)/bpf --mistakes

# The controllers for the kernel. Its tools are Debian's (crates/bpf/build.py); nothing else needs them, and the same sources give the
# same bytes.
bpf-objects:
	$(PYTHON) crates/bpf/build.py

# Tests of the kernel world run one at a time; the others share the machine's cores.
PYTEST_SHARED := --numprocesses logical --dist worksteal --durations 25
test-kernel: $(DEV)
	$(BEGUN)
	$(BIN)/python -m pytest -m "kernel and not long"

test-python: $(DEV)
	$(BEGUN)
	$(BIN)/python -m pytest $(PYTEST_SHARED) -m "not kernel and not long"

test-long: $(DEV)
	$(BEGUN)
	$(BIN)/python -m pytest $(PYTEST_SHARED) -m "long and not kernel"
	$(BIN)/python -m pytest -m "long and kernel"

# The page is a part of the package: it is installed once it is built.
lab: lab-site
	@$(MAKE) --no-print-directory lab-installed
	@echo "The lab is built: $(BIN)/fullpipe lab"

lab-site: $(LAB_TOOLS) lab-engine
	cd lab && npm run --silent build
	rm -rf $(LAB_SITE)
	cp -R lab/dist $(LAB_SITE)

lab-engine:
	lab/engine.sh

lab-installed: $(PACKAGE)

# FULLPIPE_SUMMARIES: summaries of the native simulator, which those of the engine must equal.
test-lab: lab
	cd lab && npm run --silent lint
	$(BIN)/python lab/tests/same/summaries.py lab/node_modules/.summaries.jsonl
	cd lab && FULLPIPE_SUMMARIES=node_modules/.summaries.jsonl npm run --silent test
	@chromium="$(CHROMIUM)"; if [ -n "$$chromium" ]; then \
		cd lab && FULLPIPE="$(abspath $(BIN))/fullpipe" CHROMIUM="$$chromium" npm run --silent browser; \
	else \
		echo "no Chromium, so that the page is not tested in a browser: apt install chromium, or CHROMIUM=/where/it/is"; \
	fi

# How fast the engine is: in node, in a browser and natively, one after another.
bench-lab: lab-site $(TOOLS)
	cargo build --profile lab --locked --package fullpipe-bench --example lab
	cd lab && CHROMIUM="$(CHROMIUM)" NATIVE="$(abspath $(CARGO_TARGET))/lab/examples/lab" npm run --silent bench

quic: $(PACKAGE) $(QUIC)
	@$(BIN)/fullpipe doctor | grep -A 1 "^QUIC world"
	@echo "The world quic is built: $(BIN)/fullpipe compare bbr3 noq:bbr3 quinn:bbr --world quic"

# Tests of the crates run in the dev profile, for its overflow checks and debug assertions; those without the flags of quic/world
# compile everything again, and need no speed. In Python, what needs none of the stacks is tested by `test-python`; two of these files build
# examples beside what the crates compiled: a controller of one's own, and a program that downloads a file, which runs in the kernel world.
QUIC_TESTS := tests/test_quic_stacks.py tests/test_quic_example.py tests/test_quic_programs.py tests/test_stacks.py tests/test_gate_stacks.py
test-quic: $(DEV) $(QUIC)
	$(BEGUN)
	$(QUIC_CARGO) fmt --all --check
	$(QUIC_CARGO) clippy --workspace --all-targets --locked -- -D warnings
	export RUSTDOCFLAGS="-D warnings" && $(QUIC_CARGO) doc --no-deps --locked $(addprefix -p ,$(QUIC_CRATES))
	$(QUIC_CARGO) test --locked
	cd quic && CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_TARGET_DIR="$(abspath $(CARGO_TARGET))/quic" \
		cargo test --workspace --exclude fullpipe-quic --locked
	CARGO_TARGET_DIR="$(abspath $(CARGO_TARGET))" FULLPIPE_REQUIRE_QUIC=1 $(BIN)/python -m pytest -m "not kernel and not long" \
		$(PYTEST_SHARED) $(QUIC_TESTS)
	CARGO_TARGET_DIR="$(abspath $(CARGO_TARGET))" FULLPIPE_REQUIRE_QUIC=1 $(BIN)/python -m pytest -m "kernel and not long" $(QUIC_TESTS)

# A package of its own, with a lock file of its own, that checks itself.
test-s2n:
	cargo run --locked --manifest-path quic/s2n/tests/connection/Cargo.toml --target-dir "$(abspath $(CARGO_TARGET))/quic"

# Each adapter has its own versions, pinned in its folder; no other target needs one.
STACKS := quic/adapters
STACK_CARGO := CARGO_TARGET_DIR="$(abspath $(CARGO_TARGET))/stacks" cargo
STACK_VENV := $(abspath $(CARGO_TARGET))/stacks/aioquic

stack-smoltcp stack-quiche stack-tquic stack-s2n: stack-%: $(TOOLS)
	$(STACK_CARGO) build --release --locked --manifest-path $(STACKS)/$*/Cargo.toml
	install -m 755 "$(CARGO_TARGET)/stacks/release/stack-$*" $(BIN)/stack-$*

stack-ngtcp2: $(TOOLS)
	@pkg-config --exists libngtcp2 libngtcp2_crypto_gnutls gnutls || { \
		echo "ngtcp2 is missing: apt install libngtcp2-dev libngtcp2-crypto-gnutls-dev libgnutls28-dev"; exit 1; }
	$(CC) -O2 -Wall -Wextra -DKEYS='"$(abspath $(STACKS))/keys"' -o $(BIN)/stack-ngtcp2 $(STACKS)/ngtcp2/adapter.c $(STACKS)/c/serve.c \
		$$(pkg-config --cflags --libs libngtcp2_crypto_gnutls libngtcp2 gnutls)

stack-aioquic: $(TOOLS)
	$(PYTHON) -m venv "$(STACK_VENV)"
	"$(STACK_VENV)/bin/pip" install --disable-pip-version-check --quiet -r $(STACKS)/aioquic/requirements.txt
	printf '#!/bin/sh\nexec "%s" "%s" "$$@"\n' "$(STACK_VENV)/bin/python" "$(abspath $(STACKS))/aioquic/adapter.py" > $(BIN)/stack-aioquic
	chmod 755 $(BIN)/stack-aioquic

# quic-go's is a test's program, because Go has virtual time only there; netstack takes time from its caller. Modules come from Go's proxy;
# go.sum has their hashes.
stack-quicgo: GO := test -c
stack-netstack: GO := build -buildvcs=false
stack-quicgo stack-netstack: stack-%: $(TOOLS)
	@command -v go >/dev/null || { echo "go is missing: install Go 1.26 or newer (https://go.dev/dl)" >&2; exit 1; }
	cd $(STACKS)/$* && go $(GO) -trimpath -o "$(abspath $(BIN))/stack-$*" .

# MISTAKES=--quick makes only the shorter list.
mistakes: $(TOOLS)
	$(BIN)/python tests/mistakes/run.py $(MISTAKES)

# 10^8 events for each controller, the sampler and the filter: about half an hour. LINUX_SOURCE names a source other than the
# one in /usr/src.
EVENTS ?= 100000000
differential:
	cargo run --release --locked --manifest-path tests/differential/Cargo.toml \
		--target-dir $(CARGO_TARGET)/differential -- --events $(EVENTS)

# The crates that others can use. What is packaged is what is committed. Those of quic/ are built against the packages' sources here,
# which stand in for the published ones. Each commit has a directory of its own: cargo keeps the sources of a version that it
# unpacked once, though they changed. Nothing runs here, so that data for debuggers and optimisation would only cost time.
CRATES := fullpipe-units fullpipe-cc
QUIC_CRATES := fullpipe-quic-driver fullpipe-noq fullpipe-quinn fullpipe-s2n-quic
PACKAGED = "$(abspath $(CARGO_TARGET))/package-$$(git rev-parse --short HEAD)"
HERE := $(foreach crate,$(CRATES),--config 'patch.crates-io.$(crate).path="$(CURDIR)/crates/$(crate:fullpipe-%=%)"')
# The oldest Rust compiles the crates, what they depend on, and fullpipe-quic, which developers of stacks build into their programs,
# but only where rustup has it. What is checked everywhere are our own calls of the standard library, outside tests (`lint-rust`,
# `test-quic`). s2n-quic needs a newer Rust than the others.
MSRV := 1.88
MSRV_CRATES := $(filter-out fullpipe-s2n-quic,$(QUIC_CRATES)) fullpipe-quic
package: export CARGO_PROFILE_DEV_DEBUG := false
package: export CARGO_PROFILE_DEV_OPT_LEVEL := 0
package:
	cargo package --locked --target-dir $(PACKAGED) $(addprefix -p ,$(CRATES))
	cd quic && cargo package --target-dir $(PACKAGED) $(HERE) $(addprefix -p ,$(QUIC_CRATES))
	@if rustup run $(MSRV) cargo --version >/dev/null 2>&1; then \
		rustup run $(MSRV) cargo check --locked --target-dir $(CARGO_TARGET)/msrv $(addprefix -p ,$(CRATES)) && cd quic/world && \
		rustup run $(MSRV) cargo check --locked --target-dir "$(abspath $(CARGO_TARGET))/msrv" $(addprefix -p ,$(MSRV_CRATES)); \
	else \
		echo "Rust $(MSRV) is not checked, because it is not installed: rustup toolchain install $(MSRV) --profile minimal"; \
	fi

# Licences and sources of all that is compiled, and what the oldest Rust compiles. Advisories, which need the network, and changes of the
# public interface are the public forge's (.github/workflows/ci.yml).
audit:
	@if cargo deny --version > /dev/null 2>&1; then \
		for one in Cargo.toml quic/Cargo.toml; do cargo deny --manifest-path $$one check --config deny.toml bans licenses sources || exit 1; done; \
	else \
		echo "licences and sources are checked by tests/test_lock.py only: cargo install cargo-deny"; \
	fi
	@if cargo hack --version > /dev/null 2>&1 && command -v rustup > /dev/null; then \
		cargo hack check --locked --rust-version $(addprefix -p ,$(CRATES)); \
	else \
		echo "the oldest Rust is not checked by cargo-hack: cargo install cargo-hack"; \
	fi

# What others install: a wheel with the lab's page and the QUIC stacks, the packages beside the core, and a source distribution.
# `zig cc` links against an old glibc, so that the wheel runs wherever that or a newer one is.
GLIBC := 2.17
WHEEL_TARGET := $(shell uname -m)-unknown-linux-gnu
WHEEL_TOOLS := $(VENV)/.stamp-wheel
ZIGBUILT := $(abspath $(CARGO_TARGET))/wheel
wheel: $(WHEEL_TOOLS) lab-site
	rm -rf dist
	cd quic/world && CARGO_TARGET_DIR="$(ZIGBUILT)" cargo zigbuild --release --locked --bin fullpipe-quic --target $(WHEEL_TARGET).$(GLIBC)
	CARGO_TARGET_DIR="$(ZIGBUILT)" FULLPIPE_WHEEL_QUIC="$(ZIGBUILT)/$(WHEEL_TARGET)/release/fullpipe-quic" \
		MATURIN_PEP517_ARGS="--zig --target $(WHEEL_TARGET) --compatibility manylinux_$(subst .,_,$(GLIBC))" \
		$(BIN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --no-build-isolation --wheel-dir dist . $(PACKAGES) $(DEV_PACKAGES)
	$(BIN)/maturin sdist --out dist
	$(BIN)/auditwheel show dist/fullpipe-[0-9]*.whl | grep manylinux_$(subst .,_,$(GLIBC))
	@ls -l dist

# Installs what `make wheel` made into an empty environment, and uses it in a folder without a checkout.
test-wheel: $(DEV)
	FULLPIPE_REQUIRE_WHEEL=1 $(BIN)/python -m pytest tests/test_wheel.py

# What `make wheel` made as sources is built and installed into an empty environment, and used there. Crates of registries are those
# that are compiled already.
test-sdist: $(DEV)
	CARGO_TARGET_DIR="$(abspath $(CARGO_TARGET))" FULLPIPE_REQUIRE_SDIST=1 $(BIN)/python -m pytest tests/test_wheel.py -k sources

# The package's Rust parts, without the kernel world, compile for systems that have none. Nothing runs; zig compiles what is C.
ELSEWHERE := aarch64-apple-darwin x86_64-pc-windows-gnu
check-elsewhere: $(WHEEL_TOOLS)
	@for target in $(ELSEWHERE); do \
		if ! rustup target list --installed 2>/dev/null | grep -qx "$$target"; then \
			echo "$$target is not checked, because rustup does not have it: rustup target add $$target"; \
		else \
			$(BIN)/cargo-zigbuild check --locked --target "$$target" -p fullpipe-py || exit 1; \
		fi; \
	done

# The simulator's tests as a program for Windows, under wine. Rust asks for random numbers in a library that wine 8 lacks, so a stand-in
# lies beside the tests.
WINDOWS := x86_64-pc-windows-gnu
WINE := $(abspath $(CARGO_TARGET))/wine
test-windows: export CARGO_TARGET_DIR := $(WINE)
test-windows: export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER := wine
test-windows: export WINEPREFIX := $(WINE)/prefix
test-windows: export WINEDEBUG := -all
test-windows:
	@for tool in wine x86_64-w64-mingw32-gcc; do command -v $$tool > /dev/null || \
		{ echo "$$tool is missing: apt install wine wine64 gcc-mingw-w64-x86-64; and rustup target add $(WINDOWS)"; exit 1; }; done
	mkdir -p "$(WINE)/$(WINDOWS)/debug/deps"
	printf '%s\n' '#include <windows.h>' 'BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);' \
		'__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T size) { return SystemFunction036(to, size); }' | \
		x86_64-w64-mingw32-gcc -shared -o "$(WINE)/$(WINDOWS)/debug/deps/bcryptprimitives.dll" -x c - -ladvapi32
	cargo test --locked --target $(WINDOWS) -p fullpipe-sim -p fullpipe-cc -p fullpipe-path --lib --tests

$(WHEEL_TOOLS): $(TOOLS) requirements/wheel.txt
	$(call LOCKED,$(BIN)/python) requirements/wheel.txt
	@touch $@

# Does not depend on the load of the machine. Needs valgrind.
instructions: $(TOOLS)
	$(BIN)/python bench/instructions.py

# The short benchmarks, a few minutes. bench/README.md has the others.
bench: $(PACKAGE)
	cargo run --release --locked -p fullpipe-bench -- packets
	cargo run --release --locked -p fullpipe-bench -- series
	cargo run --release --locked -p fullpipe-bench -- sweep
	cargo run --release --locked -p fullpipe-bench -- controllers
	$(BIN)/python bench/python.py
	cargo bench --locked -p fullpipe-path

# Versions are open in pyproject.toml and locked here, for every Python and platform. uv is a tool of this target alone. What the
# packages beside the core depend on is in the core's extras, too, because the index does not have the core.
LOCK = $(BIN)/python -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header
lock: $(TOOLS)
	$(PIP_INSTALL) uv
	$(LOCK) pyproject.toml requirements/build.in --extra dev --output-file requirements/dev.txt
	$(LOCK) pyproject.toml requirements/build.in --extra map --constraints requirements/dev.txt --output-file requirements/studies.txt
	$(LOCK) requirements/build.in --constraints requirements/dev.txt --output-file requirements/build.txt
	$(LOCK) requirements/docs.in --constraints requirements/dev.txt --output-file requirements/docs.txt
	$(LOCK) requirements/wheel.in --constraints requirements/dev.txt --output-file requirements/wheel.txt

clean:
	rm -rf $(VENV) $(SITE_VENV) out lab/node_modules lab/dist lab/src/engine/engine.wasm $(LAB_SITE)
	cargo clean

$(LAB_TOOLS): lab/package-lock.json
	@command -v node >/dev/null && command -v npm >/dev/null || { \
		echo "node or npm is missing: install Node.js 20.19 or newer (https://nodejs.org; Debian, Ubuntu: apt install" \
			"nodejs npm)" >&2; exit 1; }
	@node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' || { \
		echo "Node.js $$(node --version) is too old: install 20.19 or newer (https://nodejs.org)" >&2; exit 1; }
	cd lab && npm ci --no-audit --no-fund
	@touch $@

$(TOOLS): requirements/build.txt
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing: install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$$($(PYTHON) --version) is too old: install Python 3.11 or newer, and name it if it is not" \
			"python3: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian, Ubuntu: apt install" \
			"python3-venv)" >&2; exit 1; }
	@command -v cargo >/dev/null || { \
		echo "cargo is missing: install stable Rust 1.88 or newer (https://rustup.rs), and open a new shell so" \
			"that it is found" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(call LOCKED,$(BIN)/python) requirements/build.txt
	@touch $@

# What is in the other environment, Fullpipe and what it depends on, is imported from there.
$(SITE_TOOLS): $(TOOLS) requirements/docs.txt
	$(PYTHON) -m venv --clear $(SITE_VENV)
	$(call LOCKED,$(SITE_VENV)/bin/python) requirements/docs.txt
	@$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
		"$$($(SITE_VENV)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/fullpipe.pth"
	@touch $@

$(QUIC): $(TOOLS) $(QUIC_SOURCES)
	@echo "Compiling the QUIC stacks; the first time takes about two minutes"
	$(QUIC_CARGO) build --release --locked --bin fullpipe-quic
	install -m 755 "$(CARGO_TARGET)/quic/release/fullpipe-quic" $@

$(PACKAGE): $(TOOLS) $(SOURCES) requirements/studies.txt
	@echo "Compiling and installing Fullpipe; the first time takes about five minutes"
	$(call LOCKED,$(BIN)/python) requirements/studies.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation . $(PACKAGES)
	@touch $@

# The package and the tools that check it.
$(DEV): $(TOOLS) $(SOURCES) requirements/dev.txt
	@echo "Compiling and installing Fullpipe with the tools that check it; the first time takes about five minutes"
	$(call LOCKED,$(BIN)/python) requirements/dev.txt
	$(PIP_INSTALL) --no-deps --no-build-isolation . $(PACKAGES) $(DEV_PACKAGES)
	@touch $(PACKAGE) $@
