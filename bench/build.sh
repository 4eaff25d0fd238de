#!/bin/bash
# Processor time of a build from nothing, by room: what `make demo` compiles, then what `make test` adds.
# Uses no compiler cache. bench/build.sh [FOLDER]
set -euo pipefail
if [ "${1:-}" = --help ]; then
  sed -n '2,3s/^# //p' "$0"
  exit 0
fi
source=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$(mktemp -d)}
log=$folder/times
mkdir -p "$folder"
: > "$log"
cat > "$folder/launcher" <<END
#!/bin/bash
TIMEFORMAT='%U %S'
output=; previous=
for word in "\$@"; do [ "\$previous" = -o ] && output=\$word; previous=\$word; done
{ time "\$@" 2>&3; } 3>&2 2> >(while read -r user system; do echo "\$output \$user \$system" >> "$log"; done)
END
chmod +x "$folder/launcher"
cmake -S "$source" -B "$folder/build" -G Ninja -D CMAKE_BUILD_TYPE=Release \
  -D CMAKE_CXX_COMPILER_LAUNCHER="$folder/launcher" > /dev/null

report() {
  sleep 1
  awk -v title="$1" -v build="$folder/build" '
    function room_of(path, part) {
      if (path ~ /cmake_pch/) return "precompiled headers"
      if (path ~ /\/tests\/|^tests\//) { sub(/^.*tests\/(CMakeFiles\/)?/, "", path); split(path, part, /[.\/]/); sub(/_tests$/, "", part[1]); return "tests/" part[1] }
      if (path ~ /\/src\//) { sub(/^.*\/src\//, "", path); split(path, part, "/"); return "src/" part[1] }
      return "generated"
    }
    # A file that includes several shares its time among them.
    function rooms_of(path, rooms, count, line, source) {
      if (path ~ /\/Unity\//) {
        source = build "/" path; sub(/\.o$/, "", source)
        while ((getline line < source) > 0) {
          if (line ~ /^#include "/) { gsub(/^#include "|"$/, "", line); rooms[++count] = room_of(line) }
        }
        close(source)
      }
      if (count == 0) rooms[++count] = room_of(path)
      return count
    }
    { split("", rooms); count = rooms_of($1, rooms); all += $2 + $3
      for (i = 1; i <= count; ++i) time[rooms[i]] += ($2 + $3) / count }
    END { printf "%s: %.1f min of processor time for compiling\n", title, all / 60
          for (room in time) printf "%8.1f s  %s\n", time[room], room | "sort -rn" }' "$log"
  : > "$log"
}

build() {
  cmake --build "$folder/build" "$@" > "$folder/output" || { tail -40 "$folder/output" >&2; exit 1; }
}

build --target emplace_cli
report "what make demo builds"
build
report "what make test adds"
