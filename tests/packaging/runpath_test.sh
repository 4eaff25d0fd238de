#!/bin/bash
# No binary that is passed on says where it was built: what it looks for its libraries in is relative to itself, or the
# system's.
#   runpath_test.sh BUILD_FOLDER BINARY...
command -v readelf > /dev/null || exit 77
build=$1
shift
failed=0
for binary in "$@"; do
  if ! paths=$(readelf -d "$binary"); then
    failed=1
  elif grep -E 'RUNPATH|RPATH' <<< "$paths" | grep -F "$build" >&2; then
    echo "${binary#"$build"/}: the path of the build folder" >&2
    failed=1
  fi
done
exit $failed
