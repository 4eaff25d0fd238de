#!/bin/bash
# Writes what the fuzzers begin with to fuzz/corpus, from the program's own writers and the tests'
# data: small files of every format. Needs build/emplace.
set -euo pipefail
cd "$(dirname "$0")/.."
emplace=${EMPLACE:-build/emplace}
corpus=fuzz/corpus
rm -rf "$corpus"
mkdir -p "$corpus"/{graph_json,onnx,onnx_node,onnx_model,gzip,cluster_yaml,dnn_partitioning,pipedream,iopddl,placement,texts} \
         "$corpus"/{import,partition,external,state,curves,collectives,page,phases,messages}

# The smallest models of the zoo, as graphs and as ONNX.
$emplace zoo export stacked-rnn:layers=1,sequence=1,batch=1 -o "$corpus/graph_json/rnn.json"
$emplace zoo export stacked-rnn:layers=1,sequence=1,batch=1,training=false -o "$corpus/onnx/rnn.onnx"
$emplace zoo export alexnet:training=false,batch=1 -o "$corpus/onnx/alexnet.onnx"
$emplace zoo export vgg-16:training=false,batch=1 -o "$corpus/onnx/vgg.onnx"
cat > "$corpus/graph_json/small.json" <<'JSON'
{"format": "emplace.graph/1", "name": "small", "source": "seed", "x-note": 1,
 "tensors": [{"shape": [4, 2], "dtype": "float32"}, {"bytes": 8, "memory_bytes": 16}, {"bytes": 4}],
 "ops": [{"name": "w", "type": "parameter", "inputs": [], "outputs": [0], "persistent_bytes": 8},
  {"name": "a", "type": "mm", "inputs": [0], "outputs": [1], "time_us": {"p100": 1.5, "*": 2},
   "flops": 100, "module": "m.0", "attributes": {"axis": -1, "mode": "x", "pads": [1, 2], "eps": 1e-5}},
  {"name": "b", "type": "view", "inputs": [1], "outputs": [2], "view": true, "after": ["a"],
   "colocate": "g", "devices": ["gpu0"], "phase": "backward", "temp_bytes": 3}]}
JSON
for preset in 1xp100 2xv100-nvlink "2x(2xa100-nvlink)@25GB/s"; do
  $emplace cluster show "$preset" > "$corpus/cluster_yaml/$(tr -dc a-z0-9 <<< "$preset").yaml"
done
cp tests/data/cluster_yaml/box.yaml "$corpus/cluster_yaml/"
cp tests/data/dnn_partitioning/* "$corpus/dnn_partitioning/"
cp tests/data/pipedream/* "$corpus/pipedream/"
cat > "$corpus/iopddl/two.json" <<'JSON'
{"problem": {"name": "two", "edges": {"nodes": [[0, 1]], "costs": [[1, 2, 3, 4, 5, 6]]},
 "nodes": {"intervals": [[3, 9], null], "costs": [[7, 1000000000000000000], [1, 2, 3]],
           "usages": [[5, 6], [0, 0, 0]]}, "usage_limit": 50}}
JSON
echo '{"format": "emplace.placement/1", "assignment": {"a": "gpu0", "b": "gpu1"}, "priorities": {"a": 1, "b": 0}}' \
  > "$corpus/placement/names.json"
echo '[0, "gpu1"]' > "$corpus/placement/list.json"
# The fuzzer puts gzip's first two bytes in front.
echo 'some text' | gzip -9n | tail -c +3 > "$corpus/gzip/text"
head -c 3000 /dev/zero | gzip -9n | tail -c +3 > "$corpus/gzip/zeros"
n=0
for text in 'heft(insertion=false)' 'encoder.*=gpu0,gpu1' '1.5GiB' '4xp100@8GiB' '2x4+1x8' '12GB/s' \
            'local:4x3' 'cuda:0' 'zoo:gnmt-4:batch=64,layers=2' '8..512' '1.25e-3'; do
  printf "\\x$(printf %02x $n)%s" "$text" > "$corpus/texts/$n"
  n=$((n + 1))
done
for n in 1 2 3; do
  for target in onnx_node onnx_model; do
    seq $((n * 1000)) 7 $((n * 1000 + 700)) | gzip -9n > "$corpus/$target/$n"  # any bytes do
  done
done

printf '# two\nop,devices,bytes,microseconds,machines\nall-reduce, 8, 1048576, 44.2, 2\nall-gather,2,8,1e3,1\n' \
  > "$corpus/collectives/rows.csv"

# The first byte says which importer; the fuzzers' graph has the ops a and b.
printf '\x00{"": 0, "a": 1}' > "$corpus/import/device_map"
printf '\x01{"a": "gpu0", "b": 1}' > "$corpus/import/names.json"
printf '\x01name,device\n"a",gpu0\nb\tgpu1\n' > "$corpus/import/names.csv"
{ printf '\x02'; cat "$corpus/onnx/rnn.onnx"; } > "$corpus/import/model.onnx"
cat > "$corpus/partition/two.json" <<'JSON'
{"format": "emplace.partition/1", "graph": "g", "cluster": "c", "method": "dp", "factors": [2, 2],
 "devices": ["a", "b", "c", "d"], "tensors": {"x": {"shape": [4, 4], "split": [0, null]}, "y:1": {"shape": [], "split": [null, null]}},
 "ops": {"x": {"type": "MatMul", "strategy": ["i", null]}, "y": {"type": "Add", "strategy": [null, "sum k"]}}}
JSON
# Of the model that the fuzzer fits partitions to: the weight in two parts, as gates lie in one matrix.
cat > "$corpus/partition/fitting.json" <<'JSON'
{"format": "emplace.partition/1", "graph": "g", "cluster": "c", "method": "dp", "factors": [2], "devices": ["a", "b"],
 "tensors": {"w": {"shape": [2, 2, 4], "split": [0]}, "x": {"shape": [8, 4], "split": [null]}, "y": {"shape": [8, 4], "split": [1]}},
 "ops": {"y": {"type": "MatMul", "strategy": ["n"]}}}
JSON
printf '{"format": "emplace.profile-phases/1"}\n%s\n' \
  '{"reference_ns": 5, "kinds": [{"step_ns": 7, "ops_ns": [3, 4], "temporary_bytes": [0, 1], "busy_ops_ns": []}], "links": [[[1024, 9]], []]}' \
  > "$corpus/phases/one"
echo '{"evaluate": [0, 1], "priorities": [1, 0]}' > "$corpus/external/one"
echo '{"evaluate": [[0, 1], [1, 1]]}' > "$corpus/external/many"
echo '{"place": [1, 0]}' > "$corpus/external/place"
# Two entries of a checkpoint, as src/learn/train/state.cc writes them.
python3 - "$corpus/state/two" <<'PY'
import struct, sys
number = lambda n: struct.pack("<q", n)
entry = lambda name, kind, shape, data: (number(len(name)) + name + kind + number(len(shape)) +
                                         b"".join(map(number, shape)) + number(len(data)) + data)
open(sys.argv[1], "wb").write(number(3) + entry(b"round", b"i", [], number(7)) +
                              entry(b"subject", b"t", [], b"post") + entry(b"a", b"f", [1, 2], bytes(8)))
PY
# A placement of two ops and its value.
printf '\x02\0\0\0\0\0\0\0\0\x01\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' > "$corpus/messages/two"
printf 'round,evaluations\n1,10,0.5\n2,20,1\n3,3' > "$corpus/curves/rows"
echo '{"format": "emplace.answer/1", "graph": "g", "cluster": "c", "step_ns": 5}' > "$corpus/page/answer.json"
echo '{"format": "emplace.comparison/1", "graph": "g", "runs": [{"placer": "heft", "step_ns": 5}]}' \
  > "$corpus/page/comparison.json"
echo '{"format": "emplace.report/1", "results": [{"answer": {"step_ns": 1}}]}' > "$corpus/page/data.json"
{ printf '<html><script id="data" type="text/plain">'; gzip -9n < "$corpus/page/data.json" | base64 -w0
  printf '</script></html>'; } > "$corpus/page/page.html"
