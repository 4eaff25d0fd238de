#!/bin/bash
# Builds the last commit twice, in folders of different names and lengths and without the compiler cache, and compares
# every program, library and module byte by byte. Exit code 1 where one differs.
#   tools/reproducible.sh [OPTION...]    options of CMake: -D EMPLACE_LEARN=OFF halves the time
set -euo pipefail
cd "$(dirname "$0")/.."
binaries() {  # FOLDER: what is passed on of a build
  (cd "$1/build-package" && find . -name CMakeFiles -prune -o -type f \( -name emplace -o -name '*.so*' \) -print | sort)
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
places=("$folder/a" "$folder/somewhere/else/with a longer name")
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
for place in "${places[@]}"; do
  mkdir -p "$place"
  git archive HEAD | tar -x -C "$place"
  CCACHE_DISABLE=1 cmake -S "$place" --preset package "$@" > /dev/null
  CCACHE_DISABLE=1 cmake --build "$place/build-package" > "$place/log" || { tail -n 40 "$place/log"; exit 1; }
done
differ=0
if ! diff <(binaries "${places[0]}") <(binaries "${places[1]}"); then
  echo "not the same binaries were built"
  differ=1
fi
while read -r file; do
  sums=()
  for place in "${places[@]}"; do sums+=("$(sha256sum < "$place/build-package/$file" | cut -c1-64)"); done
  if [ "${sums[0]}" = "${sums[1]}" ]; then
    echo "${file#./}: equal, ${sums[0]}"
  else
    echo "${file#./}: differs: ${sums[*]}"
    differ=1
  fi
done < <(binaries "${places[0]}")
exit $differ
