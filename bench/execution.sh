#!/bin/bash
# The tables of docs/results/execution.md that this machine allows: groups of cores over slow links
# and at the speed of memory; a GPU beside cores, with and without memory to spare; peaks of memory;
# PyTorch eager. Each is a file of FOLDER, and one that is there is not measured again, so whoever
# interrupts this goes on later.
#
#   bench/execution.sh FOLDER [MODEL...]
#
# MINUTES=10 is what a table may take; what it had printed by then is kept as NAME.cut. PYTHON=python3
# is one that has PyTorch.
set -euo pipefail
if [ $# = 0 ] || [ "$1" = --help ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0"
  exit 0
fi
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
shift
mkdir -p "$folder"
cd "$folder"
emplace=$root/build/emplace
cores=$(nproc)
python=${PYTHON:-python3}

# measure NAME COMMAND...
measure() {
  local name=$1
  shift
  [ -e "$name.txt" ] && return
  echo "$name: $*" >&2
  if timeout "${MINUTES:-10}m" "$@" > "$name.cut"; then
    mv "$name.cut" "$name.txt"
  else
    echo "$name: not finished; see $name.cut" >&2
  fi
}

# One more core is left to each link where there are so many.
if [ "$cores" -ge 16 ]; then groups=3x4; elif [ "$cores" -ge 8 ]; then groups=3x2; else groups=2x1; fi
spare=
[ "$cores" -ge 8 ] || spare=--oversubscribe
"$emplace" cluster local -q --no-gpus --groups $groups $spare --link 1GB/s,50us -o slow.yaml
"$emplace" cluster local -q --no-gpus --groups $groups $spare -o fast.yaml
"$emplace" cluster local -q --no-gpus --groups 1x$((cores >= 16 ? 4 : 1)) -o cpu.yaml
measure groups-slow "$root/build/bench/fidelity" --cluster slow.yaml "$@"
measure groups-fast "$root/build/bench/fidelity" --cluster fast.yaml "$@"
measure peaks "$root/build/bench/peaks" "$@"
measure eager-cpu "$python" "$root/bench/eager.py" --emplace "$emplace" --cluster cpu.yaml "$@"

if "$emplace" cluster local -q | grep -q 'runs_on: *"\?cuda:0'; then
  "$emplace" cluster local -q --groups 1x$((cores / 2)) -o gpu.yaml
  measure gpu-and-cores "$root/build/bench/fidelity" --cluster gpu.yaml "$@"
  measure gpu-too-small "$root/build/bench/fidelity" --cluster gpu.yaml --gpu-memory 0.6 "$@"
  measure eager-gpu "$python" "$root/bench/eager.py" --emplace "$emplace" --cluster gpu.yaml "$@"
  measure compiled-gpu "$python" "$root/bench/eager.py" --compile --emplace "$emplace" --cluster gpu.yaml "$@"
fi
