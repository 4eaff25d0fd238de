"""Exports, read by programs that are not ours: Graphviz, networkx, ONNX's checker, ONNX Runtime, and Python's own
parsers. What they read must be the model and its placement.

Usage: exports_test.py EMPLACE. A consumer that is not installed is skipped; its test says which."""

import collections
import csv
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import tomllib

import runtimes_test
from consumer import ExportTest, main, needs, program

RUN_PARTS = pathlib.Path(__file__).parent.parent / "endtoend/run_parts.cjs"


class Exports(ExportTest):
    # ---- graphs

    def test_csv_has_every_op_where_it_is(self):
        self.assertEqual({name: row["device"] for name, row in self.ops.items()}, self.device_of)

    def test_graphviz_draws_dot(self):
        dot = program("dot")
        self.emplace(self.placed + "dot -o graph.dot")
        plain = self.shell([dot, "-Tplain", "graph.dot"])
        nodes = [line for line in plain.splitlines() if line.startswith("node ")]
        timed = [row for row in self.ops.values() if row["duration_ns"] != "0"]
        self.assertEqual(len(nodes), len(timed) + 4)  # and a legend of devices
        self.assertIn("</svg>", self.shell([dot, "-Tsvg", "graph.dot"]))

    def test_networkx_reads_graphml(self):
        networkx = needs("networkx")
        self.emplace(self.placed + "graphml -o graph.graphml")
        graph = networkx.read_graphml(self.folder / "graph.graphml")
        self.assertTrue(networkx.is_directed_acyclic_graph(networkx.DiGraph(graph)))
        self.assertEqual({data["name"]: data["device"] for _, data in graph.nodes(data=True)}, self.device_of)
        for start, end, data in graph.edges(data=True):
            apart = graph.nodes[start]["device"] != graph.nodes[end]["device"]
            self.assertEqual(data["crosses"], apart, (start, end))

        if shutil.which("graphml2gv"):  # Graphviz takes the graph alone
            self.assertEqual(self.shell(["graphml2gv", "graph.graphml"]).count(" -> "), graph.number_of_edges())

    def test_json_reads_the_trace(self):
        trace = json.loads(self.emplace(self.placed + "trace"))["traceEvents"]
        spans = {event["args"]["op"]: event for event in trace if event["ph"] == "X" and event["pid"] == 1}
        timed = {name: int(row["duration_ns"]) for name, row in self.ops.items() if row["duration_ns"] != "0"}
        self.assertEqual({name: round(1000 * span["dur"]) for name, span in spans.items()}, timed)

    def test_yaml_reads_a_cluster(self):
        yaml = needs("yaml")
        cluster = yaml.safe_load(self.emplace("cluster show 2xp100+cpu"))
        self.assertEqual([device["name"] for device in cluster["devices"]], ["gpu0", "gpu1", "cpu0"])

    # ---- ONNX

    def test_onnx_checks_parts(self):
        onnx = needs("onnx")
        self.write_weights(onnx)
        self.emplace(self.placed + "onnx-parts -o checked")
        manifest = json.loads((self.folder / "checked/manifest.json").read_text())
        kinds = collections.Counter()
        for part in manifest["parts"]:
            path = str(self.folder / "checked" / part["file"])
            onnx.checker.check_model(path)
            model = onnx.load(path)
            self.assertEqual([value.name for value in model.graph.output], part["outputs"])
            kinds.update(node.op_type for node in model.graph.node)
        whole = onnx.load(self.folder / "model.onnx", load_external_data=False)
        for kind in ("Gemm", "Gather", "Transpose"):
            self.assertEqual(kinds[kind], sum(node.op_type == kind for node in whole.graph.node), kind)

    def test_onnx_runtime_runs_parts_and_loads_annotations(self):
        node = program("node")
        if subprocess.run([node, "-e", "require('onnxruntime-node')"], capture_output=True).returncode != 0:
            self.skipTest("needs npm's onnxruntime-node in NODE_PATH")
        self.write_weights(needs("onnx"))
        self.emplace(self.placed + "onnx-parts -o parts")
        self.assertIn("same:", self.shell([node, str(RUN_PARTS), "model.onnx", "parts"]))
        for name, how in (("placed.onnx", self.placed), ("divided.onnx", self.cut)):
            self.emplace(f"{how}onnx-devices -o {name}")
            self.shell([node, str(RUN_PARTS), name, "parts"])

    # ---- runtimes that are not here: by the syntax that they read

    def test_device_map_covers_every_parameter(self):
        found = json.loads(self.emplace(self.placed + "device_map"))
        for name, row in self.ops.items():
            if row["type"] != "parameter":
                continue
            around = max((module for module in found if name == module or name.startswith(module + ".")), key=len)
            self.assertEqual(f"gpu{found[around]}", row["device"], name)

    def test_a_pipeline_is_the_same_in_every_form(self):
        titan = tomllib.loads(self.emplace(self.placed + "torchtitan"))["parallelism"]
        pipeline = json.loads(self.emplace(self.placed + "torch-pipeline"))
        deepspeed = json.loads(self.emplace(self.placed + "deepspeed --micro-batches 2"))
        stages = len(pipeline["stages"])
        self.assertEqual(titan["pipeline_parallel_degree"], stages)
        self.assertEqual(len(titan["module_fqns_per_model_part"]), stages)
        self.assertEqual(deepspeed["pipeline"]["stages"], stages)
        self.assertEqual([part[0] for part in titan["module_fqns_per_model_part"]][1:], list(pipeline["split_spec"]))

    def test_a_schedule_has_every_cell_once_and_in_order(self):
        how = "-c 4xp100 --granularity layer --training"
        self.emplace(f"place model.onnx {how} --placer expert --pin model.rotary=gpu0 -q -o training.json")
        schedule = self.emplace(f"export model.onnx training.json {how} -f torch-schedule --micro-batches 6")
        rows = list(csv.reader(schedule.splitlines()))
        cells = [re.fullmatch(r"(\d+)([FB])(\d+)", cell).groups() for row in rows for cell in row if cell]
        self.assertEqual(len(cells), len(set(cells)))
        self.assertEqual(len(cells), len(rows) * 6 * 2)
        when = {cell: i for row in rows for i, cell in enumerate(row)}
        for stage, way, batch in cells:
            if way == "B":
                self.assertLess(when[f"{stage}F{batch}"], when[f"{stage}B{batch}"])
                if int(stage) + 1 < len(rows):
                    self.assertLess(when[f"{int(stage) + 1}B{batch}"], when[f"{stage}B{batch}"])
            elif stage != "0":
                self.assertLess(when[f"{int(stage) - 1}F{batch}"], when[f"{stage}F{batch}"])

    def test_flags_are_words_of_a_shell(self):
        megatron = shlex.split(self.emplace(self.placed + "megatron"))
        self.assertEqual(megatron[:2], ["--pipeline-model-parallel-size", "4"])
        llama = shlex.split(self.emplace(self.placed + "llama.cpp"))
        flags = dict(zip(llama[::2], llama[1::2], strict=True))
        self.assertEqual(flags["--n-gpu-layers"], "999")
        # Layers go along the GPUs in order, and the head counts as one.
        shares = [float(share) for share in flags["--tensor-split"].split(",")]
        self.assertEqual(len(shares), 4)
        self.assertEqual(sum(shares), self.layers() + 1)

    def moved(self, devices):
        """The flags of llama.cpp where GPUs take others' place."""
        device_of = {name: devices.get(row["device"], row["device"]) for name, row in self.ops.items()}
        (self.folder / "turned.json").write_text(json.dumps({"assignment": device_of}))
        llama = shlex.split(self.emplace(self.placed.replace("placement.json", "turned.json") + "llama.cpp"))
        return dict(zip(llama[::2], llama[1::2], strict=True))

    def test_gpus_that_have_layers_in_another_order_are_listed(self):
        flags = self.moved({"gpu0": "gpu1", "gpu1": "gpu0"})
        self.assertEqual(flags["--device"], "CUDA1,CUDA0,CUDA2,CUDA3")
        self.assertEqual(sum(map(int, flags["--tensor-split"].split(","))), self.layers() + 1)

    def test_flags_of_layers_that_go_to_and_fro_are_patterns(self):
        flags = self.moved({"gpu2": "gpu0"})
        rules = [rule.rsplit("=", 1) for rule in flags["--override-tensor"].split(",")]
        names = [f"blk.{layer}.ffn_up.weight" for layer in range(self.layers())] + ["output.weight"]
        for name in names:
            self.assertEqual(sum(re.search(pattern, name) is not None for pattern, _ in rules), 1, name)

    def layers(self):
        return len({found[1] for name in self.ops if (found := re.search(r"layers\.(\d+)\.", name))})

    def test_cuts_fit_the_shapes(self):
        onnx = needs("onnx")
        model = onnx.load(self.folder / "model.onnx", load_external_data=False)
        shapes = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
        dtensor = json.loads(self.emplace(self.cut + "dtensor"))
        jax = json.loads(self.emplace(self.cut + "jax"))
        self.assertEqual(dtensor["mesh"], jax["mesh"])
        self.assertLessEqual(set(dtensor["parameters"]), set(jax["specs"]))
        axes = dtensor["mesh"]["axes"]
        for name, entry in dtensor["parameters"].items():
            self.assertEqual(entry["shape"], shapes[name])
            self.assertEqual(len(entry["placements"]), len(axes))
            cut = {}
            for axis, size, placement in zip(axes, dtensor["mesh"]["shape"], entry["placements"]):
                if placement != "replicate":
                    cut.setdefault(placement["shard"], []).append(axis)
                    self.assertEqual(entry["shape"][placement["shard"]] % size, 0, name)
            spec = jax["specs"][name]
            self.assertEqual({i: axes for i, axes in enumerate(spec) if axes}, cut, name)


def load_tests(loader, tests, _pattern):
    tests.addTests(loader.loadTestsFromModule(runtimes_test))
    return tests


if __name__ == "__main__":
    main()
