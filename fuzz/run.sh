#!/bin/bash
# Runs every fuzzer for a while and says how many inputs each tried. A finding ends it with exit code 1; the file that
# shows it lies in build-fuzz/findings, and belongs into fuzz/crashes/TARGET with the fix.
#   fuzz/run.sh TIME [TARGET...]    of each target: 60s, 10m, 1h
#   fuzz/run.sh --table             what was counted so far, by target, as Markdown
# RUNS: so many inputs each instead of a time. What reaches new code is kept in build-fuzz/corpus, from which the next
# run goes on. COUNTS=fuzz/counts.csv adds a line for every target to what earlier days have tried; HANG: the seconds
# after which an input counts as one that never ends, 10 unless the machine is crowded.
# Executions a second are what counts: inputs stay short (LENGTH), which reach the same code as long ones, and the
# sanitizer keeps short stacks of allocations and little of what was freed; a finding is looked at with all of it.
set -uo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --table ]; then
  awk -F, 'BEGIN { print "| target | inputs | edges | days | last commit |\n|---|---:|---:|---:|---|" }
    NR > 1 { if (!($3 in inputs)) order[++targets] = $3
             inputs[$3] += $4; if ($6 + 0 > edges[$3]) edges[$3] = $6; commit[$3] = $2
             if (!seen[$3, $1]++) days[$3]++ }
    END { for (i = 1; i <= targets; i++) { t = order[i]
            printf "| %s | %d | %d | %d | `%s` |\n", t, inputs[t], edges[t], days[t], commit[t] } }' \
    "${COUNTS:-fuzz/counts.csv}"
  exit
fi
if ! [[ ${1:-} =~ ^([1-9][0-9]*)([smh]?)$ ]]; then
  echo "fuzz/run.sh: '${1:-}' is no time; expected one such as 60s, 10m or 1h" >&2
  exit 2
fi
seconds=${BASH_REMATCH[1]}
case ${BASH_REMATCH[2]} in
  m) seconds=$((seconds * 60)) ;;
  h) seconds=$((seconds * 3600)) ;;
esac
length=${LENGTH:-2048}
shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for program in build-fuzz/fuzz/*_fuzzer; do targets+=("$(basename "$program" _fuzzer)"); done
fi
failed=0
mkdir -p build-fuzz/findings
printf '%-18s %12s %9s %9s  %s\n' target executions seconds coverage findings
for target in "${targets[@]}"; do
  mkdir -p "build-fuzz/corpus/$target"
  limit=-max_total_time="$seconds"
  [ -z "${RUNS:-}" ] || limit=-runs="$RUNS"
  options=("$limit" -timeout="${HANG:-10}" -rss_limit_mb=2048 -max_len="$length" -print_final_stats=1
           -artifact_prefix="build-fuzz/findings/$target-")
  [ -f "fuzz/dictionaries/$target.dict" ] && options+=(-dict="fuzz/dictionaries/$target.dict")
  seeds=()
  for folder in "fuzz/corpus/$target" "fuzz/crashes/$target"; do [ -d "$folder" ] && seeds+=("$folder"); done
  # libonnx and protobuf are not ours to instrument: their containers would be reported.
  ASAN_OPTIONS=detect_leaks=0:detect_container_overflow=0:allocator_may_return_null=1:malloc_context_size=3:quarantine_size_mb=16 \
    UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 \
    "build-fuzz/fuzz/${target}_fuzzer" "${options[@]}" "build-fuzz/corpus/$target" "${seeds[@]}" \
    > "build-fuzz/$target.log" 2>&1
  status=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "build-fuzz/$target.log" | tail -n1)
  took=$(sed -n 's/^Done [0-9]* runs in \([0-9]*\) second.*/\1/p' "build-fuzz/$target.log" | tail -n1)
  coverage=$(grep -o 'cov: [0-9]*' "build-fuzz/$target.log" | tail -n1 | cut -d' ' -f2)
  finding=none
  [ $status -eq 0 ] || { finding=$(grep -o 'Test unit written to .*' "build-fuzz/$target.log" | tail -n1 | cut -d' ' -f5); failed=1; }
  if [ -n "${COUNTS:-}" ] && [ -n "$executions" ]; then
    [ -s "$COUNTS" ] || echo date,commit,target,inputs,seconds,edges,finding > "$COUNTS"
    echo "$(date +%F),$(git rev-parse --short HEAD),$target,$executions,${took:-},${coverage:-},$finding" >> "$COUNTS"
  fi
  printf '%-18s %12s %9s %9s  %s\n' "$target" "${executions:-?}" "${took:-?}" "${coverage:-?}" "${finding:-see build-fuzz/$target.log}"
done
exit $failed
