#!/bin/sh
# Every benchmark with the arguments that docs/benchmarks.md shows. GRAPHS is the folder of captured
# graphs; without it, the shipped example stands in.
set -eu
cd "$(dirname "$0")/.."
graphs=${GRAPHS:-../shared/data/graphs}
if [ -d "$graphs" ]; then
  set -- "$graphs/gnmt4-b256.json.gz" "$graphs/inception-v3-b32.json.gz" "$graphs/nasnet-b32.json.gz"
else
  echo "no folder $graphs: using examples/ only"
  set -- examples/gnmt4-b256.json.gz
fi
build/bench/simulate "$@" --cluster 4xp100
echo
build/bench/load "$@" --ops 1000000
echo
build/bench/place "$@" --cluster 8xp100
echo
if [ -d ../shared/data/peers ]; then
  build/bench/throughput --seconds 10 --seeds 5
  echo
  build/bench/select --seconds 60 --threads 2
fi
