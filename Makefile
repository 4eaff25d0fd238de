# What people type. Each target does its own set-up first.
.PHONY: build demo test bench format lint debug clean

SOURCES := $(shell find src tests bench -name '*.cc' -o -name '*.h')

build: build/build.ninja
	@cmake --build build

build/build.ninja: tools/packages.txt CMakePresets.json
	@tools/setup.sh
	@cmake --preset release >/dev/null

demo: build
	@mkdir -p demo-out
	@build/emplace compare examples/gnmt4-b256.json.gz --cluster 4xh200 --schedulers best --time 5s \
	  --output demo-out/placement.json --trace demo-out/timeline.json

test: build
	@ctest --preset release --parallel 2

debug:
	@tools/setup.sh
	@cmake --preset debug >/dev/null
	@cmake --build --preset debug
	@ctest --preset debug --parallel 2

bench: build
	@bench/run.sh

format:
	@tools/setup.sh
	@clang-format -i $(SOURCES)

lint: build
	@tools/check_layers.py
	@clang-format --dry-run -Werror $(SOURCES)
	@tools/lint.sh

clean:
	@rm -rf build build-debug demo-out
