# What people type. Each target does its own set-up first.
.PHONY: build program demo test bench format lint debug fuzz clean

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

# Every fuzzer for TIME: make fuzz TIME=60s.
TIME ?= 60s
fuzz:
	@tools/setup.sh
	@cmake --preset fuzz >/dev/null
	@cmake --build build-fuzz
	@fuzz/run.sh $(TIME)

bench: build
	@cmake --build build --target bench_all
	@bench/run.sh

format:
	@tools/setup.sh
	@clang-format -i $(SOURCES)

lint: build
	@tools/check_layers.py
	@tools/check_names.py
	@clang-format --dry-run -Werror $(SOURCES)
	@tools/lint.sh

clean:
	@rm -rf build build-debug build-fuzz demo-out
