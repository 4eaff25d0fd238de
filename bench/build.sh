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
  awk -v title="$1" '
    { room = $1; sub(/^.*\/src\//, "src/", room); sub(/^tests\/CMakeFiles\//, "tests/", room)
      if (room ~ /cmake_pch/) room = "precompiled headers"
      else if (room ~ /^src\//) { split(room, part, "/"); room = "src/" part[2] }
      else if (room ~ /^tests\//) { split(room, part, "/"); room = part[1] "/" part[2]; sub(/\.dir$/, "", room) }
      else room = "generated"
      time[room] += $2 + $3; all += $2 + $3 }
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
