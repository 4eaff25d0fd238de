#!/bin/bash
# The tables of docs/results/execution.md that this machine allows: groups of cores over slow links
# and at the speed of memory; a GPU beside cores, with and without memory to spare; peaks of memory;
# PyTorch eager. Each model's is a file FOLDER/TABLE/MODEL.txt, and one that is there is not measured
# again, so whoever interrupts this goes on later.
#
#   bench/execution.sh FOLDER [MODEL...]
#
# MINUTES=10 is what a model may take in a table; what it had printed by then is kept as MODEL.cut.
# PYTHON is a Python that has PyTorch: by default the first of python3 and /usr/bin/python3 that does.
# The exit code is 1 if a file is missing in the end.
set -euo pipefail
if [ $# = 0 ] || [ "$1" = --help ]; then
  sed -n '2,12s/^# \{0,1\}//p' "$0"
  exit 0
fi
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
shift
mkdir -p "$folder"
cd "$folder"
emplace=$root/build/emplace
cores=$(nproc)
asked=("$@")
missing=0

python=
for candidate in ${PYTHON:-python3 /usr/bin/python3}; do
  if "$candidate" -c 'import torch' 2> import.log; then
    python=$candidate
    break
  fi
done

# measure TABLE COMMAND...: of each model that was asked for, or of those that the command lists.
measure() {
  local table=$1 models=("${asked[@]}") model file
  shift
  if [ ${#models[@]} = 0 ]; then
    "$@" --list > "$table.list"
    mapfile -t models < "$table.list"
  fi
  mkdir -p "$table"
  for model in "${models[@]}"; do
    file=${model#zoo:}
    file=$table/${file//[^a-zA-Z0-9.]/-}
    [ -e "$file.txt" ] && continue
    echo "$table: $model" >&2
    if timeout "${MINUTES:-10}m" "$@" "$model" > "$file.cut"; then
      mv "$file.cut" "$file.txt"
    else
      echo "$table: $model: not finished; see $file.cut" >&2
      missing=1
    fi
  done
}

# measure_eager TABLE OPTION...
measure_eager() {
  local table=$1
  shift
  if [ -z "$python" ]; then
    echo "$table: no Python with PyTorch: $(tail -n 1 import.log)" >&2
    missing=1
    return
  fi
  measure "$table" "$python" "$root/bench/eager.py" --emplace "$emplace" "$@"
}

# One more core is left to each link where there are so many.
if [ "$cores" -ge 16 ]; then groups=3x4; elif [ "$cores" -ge 8 ]; then groups=3x2; else groups=2x1; fi
spare=
[ "$cores" -ge 8 ] || spare=--oversubscribe
"$emplace" cluster local -q --no-gpus --groups $groups $spare --link 1GB/s,50us -o slow.yaml
"$emplace" cluster local -q --no-gpus --groups $groups $spare -o fast.yaml
"$emplace" cluster local -q --no-gpus --groups 1x$((cores >= 16 ? 4 : 1)) -o cpu.yaml
measure groups-slow "$root/build/bench/fidelity" --cluster slow.yaml
measure groups-fast "$root/build/bench/fidelity" --cluster fast.yaml
measure peaks "$root/build/bench/peaks"
measure_eager eager-cpu --cluster cpu.yaml --processor-time

"$emplace" cluster local -q -o machine.yaml
if grep -q 'runs_on: *"\?cuda:0' machine.yaml; then
  "$emplace" cluster local -q --groups 1x$((cores / 2)) -o gpu.yaml
  measure gpu-and-cores "$root/build/bench/fidelity" --cluster gpu.yaml
  measure gpu-too-small "$root/build/bench/fidelity" --cluster gpu.yaml --gpu-memory 0.6
  measure_eager eager-gpu --cluster gpu.yaml
  measure_eager eager-gpu-tf32 --cluster gpu.yaml --numbers tf32
  measure_eager compiled-gpu --cluster gpu.yaml --compile
fi
exit $missing
