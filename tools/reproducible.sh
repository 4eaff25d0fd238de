#!/bin/bash
# Builds the last commit twice, in folders of different names and lengths and without the compiler cache, and compares
# every binary byte by byte. Exit code 1 where one differs.
#   tools/reproducible.sh [TARGET [FILE...]]    default: the program and its library
# The files that are compared are those of the build folder; OPTIONS are further ones of CMake.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-emplace_cli}
shift || true
files=("$@")
[ ${#files[@]} -gt 0 ] || files=(emplace libemplace.so)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
places=("$folder/a" "$folder/somewhere/else/with a longer name")
for place in "${places[@]}"; do
  mkdir -p "$place"
  git archive HEAD | tar -x -C "$place"
  # shellcheck disable=SC2086
  CCACHE_DISABLE=1 cmake -S "$place" --preset package -D EMPLACE_LEARN=OFF -D EMPLACE_PYTHON=OFF ${OPTIONS:-} > /dev/null
  CCACHE_DISABLE=1 cmake --build "$place/build-package" --target "$target" > "$place/log" || { tail -n 40 "$place/log"; exit 1; }
done
differ=0
for file in "${files[@]}"; do
  sums=()
  for place in "${places[@]}"; do sums+=("$(sha256sum < "$place/build-package/$file" | cut -c1-64)"); done
  if [ "${sums[0]}" = "${sums[1]}" ]; then
    echo "$file: equal, ${sums[0]}"
  else
    echo "$file: differs: ${sums[*]}"
    differ=1
  fi
done
exit $differ
