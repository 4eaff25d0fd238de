#!/bin/bash
# How long fuzz/run.sh lets each fuzzer run: what `make fuzz TIME=...` says, in seconds.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/fuzz" "$folder/build-fuzz/fuzz"
cp "$source/fuzz/run.sh" "$folder/fuzz/"
printf '#!/bin/sh\necho "$@"\n' > "$folder/build-fuzz/fuzz/one_fuzzer"
chmod +x "$folder/build-fuzz/fuzz/one_fuzzer"
failed=0
expect() {  # TIME SECONDS
  "$folder/fuzz/run.sh" "$1" > /dev/null
  if ! grep -q -e "-max_total_time=$2 " "$folder/build-fuzz/one.log"; then
    echo "$1: expected $2 seconds instead of $(cat "$folder/build-fuzz/one.log")" >&2
    failed=1
  fi
}
expect 20 20
expect 20s 20
expect 10m 600
expect 2h 7200
for wrong in "" m 1d 1.5m -5 0s; do
  if "$folder/fuzz/run.sh" "$wrong" > /dev/null 2>&1; then
    echo "'$wrong' is taken for a time" >&2
    failed=1
  fi
done
# What is counted is added up by target.
printf '%s\n' date,commit,target,inputs,seconds,edges,finding 2026-01-01,aaa,one,100,1,20,none 2026-01-02,bbb,two,5,1,7,none \
  2026-01-02,bbb,one,1000000,9,15,none > "$folder/fuzz/counts.csv"
table=$("$folder/fuzz/run.sh" --table)
for row in '| one | 1000100 | 20 | 2 | `bbb` |' '| two | 5 | 7 | 1 | `bbb` |'; do
  if ! grep -qF "$row" <<< "$table"; then
    echo "expected $row in $table" >&2
    failed=1
  fi
done
exit $failed
