#!/usr/bin/env bash
# Writes the golden runs (tests/golden/<key>.txt) again: of the placers named, or of all.
#
#   tools/regen_golden.sh                 # all
#   tools/regen_golden.sh heft m_topo     # these
#
# BUILD names the build folder (default: build). Read the difference before committing it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BUILD:-$root/build}

filter="AllPlacers/Golden.*"
if (($# > 0)); then
  filter=$(printf 'AllPlacers/Golden.*/%s:' "$@")
fi

cmake --build "$build" --target conformance_tests
output=$(EMPLACE_REGENERATE_GOLDEN=1 "$build/tests/conformance_tests" --gtest_filter="$filter") || {
  echo "$output" >&2
  exit 1
}
if grep -q "Running 0 tests" <<<"$output"; then
  echo "regen_golden.sh: there is no placer of that name: $*" >&2
  exit 2
fi
git -C "$root" --no-pager diff --stat -- tests/golden
