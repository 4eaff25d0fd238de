# What people type. Each target does its own set-up first.
.PHONY: build program demo test bench format lint debug tsan fuzz install package clean

SOURCES := $(shell find include src tests bench examples fuzz -name '*.cc' -o -name '*.h')

build: build/build.ninja
	@cmake --build build

# The program without what needs libtorch.
program: build/build.ninja
	@cmake --build build --target emplace_cli

build/build.ninja: tools/packages.txt CMakePresets.json
	@tools/setup.sh
	@cmake --preset release >/dev/null

demo: program
	@mkdir -p demo-out
	@build/emplace compare examples/gnmt4-b256.json.gz --cluster 4xh200 --placers heuristic,partition,auto \
	  --schedulers best --time 15s --output demo-out/placement.json --trace demo-out/timeline.json \
	  --report demo-out/report.html

test: build
	@ctest --preset release --parallel 2

debug:
	@tools/setup.sh
	@cmake --preset debug >/dev/null
	@cmake --build --preset debug
	@ctest --preset debug --parallel 2

# The rooms that have threads, under the thread sanitizer: make tsan, or make tsan ROOMS="base sim".
ROOMS ?=
tsan:
	@tools/setup.sh
	@cmake --preset tsan >/dev/null
	@cmake --build --preset tsan --target $(if $(ROOMS),$(ROOMS:%=%_tests),tsan_tests)
	@ctest --preset tsan --parallel 2 $(if $(ROOMS),--tests-regex '^($(shell echo $(ROOMS) | tr ' ' '|'))$$')

# The program, its libraries, headers and Python package: make install PREFIX=/usr/local DESTDIR=...
PREFIX ?= /usr/local
install: build
	@cmake --install build --prefix $(PREFIX)

# Debian packages and a bill of materials, in build-package.
package:
	@tools/setup.sh
	@cmake --preset package >/dev/null
	@cmake --build --preset package
	@tools/sbom.py build-package -o build-package/share/sbom.spdx.json
	@cd build-package && SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2>/dev/null || echo 0)} cpack -G DEB

# Every fuzzer for TIME, or for so many inputs: make fuzz TIME=60s, make fuzz RUNS=100000.
TIME ?= 60s
RUNS ?=
fuzz:
	@tools/setup.sh
	@cmake --preset fuzz >/dev/null
	@cmake --build build-fuzz
	@RUNS=$(RUNS) fuzz/run.sh $(TIME)

bench: build
	@cmake --build build --target bench_all
	@bench/run.sh

format:
	@tools/setup.sh
	@clang-format -i $(SOURCES)

lint: build
	@tools/check_layers.py
	@tools/check_names.py
	@tools/check_sizes.py
	@clang-format --dry-run -Werror $(SOURCES)
	@tools/lint.sh

clean:
	@rm -rf build build-debug build-tsan build-fuzz build-package demo-out
