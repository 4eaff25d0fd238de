"""Exports, taken by the runtimes that they are for: transformers and accelerate, PyTorch's pipelines and DTensor, JAX,
ONNX Runtime. Each computes with the export and without, and the numbers are compared.

Usage: runtimes_test.py EMPLACE. What is not installed, or too old, is skipped; the test says which. Each runtime works
in processes of its own (runtime_jobs.py), without network, for a minute at most."""

import collections
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

from consumer import ExportTest, main, needs, needs_version

JOBS = pathlib.Path(__file__).parent / "runtime_jobs.py"
SECONDS = 60
# The same with a key for each query: the plain model of runtime_jobs.py.
PLAIN = ("llama3-8b:batch=2,sequence=4,layers=4,hidden=16,heads=4,kv_heads=4,intermediate=12,vocabulary=18,"
         "training=false")
PINS = "--pin model.rotary=gpu0"


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


class Runtimes(ExportTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.emplace(f"zoo export {PLAIN} -o plain.onnx")

    def work(self, job, *arguments, processes=1, **environment):
        """Runs a job of runtime_jobs.py, as many times side by side as asked for, and returns what the first says."""
        common = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM":
                  "false", "CUDA_VISIBLE_DEVICES": "", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                  "GLOO_SOCKET_IFNAME": "lo", "WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
        started = []
        logs = [self.folder / f"{job}.{rank}.log" for rank in range(processes)]
        for rank, log in enumerate(logs):
            given = {**os.environ, **common, "RANK": str(rank), "LOCAL_RANK": str(rank), **environment}
            given = {name: value for name, value in given.items() if value is not None}
            with open(log, "w") as output:
                started.append(subprocess.Popen([sys.executable, "-B", str(JOBS), job, *arguments], cwd=self.folder,
                                                env=given, stdout=output, stderr=subprocess.STDOUT))
        end = time.monotonic() + SECONDS
        codes = []
        for process in started:
            try:
                codes.append(process.wait(max(0, end - time.monotonic())))
            except subprocess.TimeoutExpired:
                codes.append(f"not ended after {SECONDS} s")
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()
        said = [log.read_text(errors="replace") for log in logs]
        if any(codes):
            texts = "\n".join(f"--- process {i} of {job}: {code}\n{text[-5000:]}" for i, (code, text) in
                              enumerate(zip(codes, said)))
            self.fail(f"{job} {' '.join(arguments)}\n{texts}")
        return said[0]

    # ---- transformers and accelerate

    def save_llama(self):
        """The Llama of transformers that has the zoo's names and shapes, with random weights, and its answers."""
        needs_version("torch", "2.5")
        needs_version("transformers", "5.0")
        if not (self.folder / "whole.pt").exists():
            self.work("save_llama")

    def test_accelerate_knows_every_module_of_a_device_map(self):
        self.save_llama()
        needs_version("accelerate", "1.0")
        self.emplace(self.placed + "device_map -o device_map.json")
        self.work("check_device_map", "device_map.json")

    def place_beside_the_cpu(self):
        how = "-c 1xp100+cpu --granularity layer"
        pins = f"{PINS} --pin model.layers.2=cpu0 --pin model.layers.3=cpu0 --pin model.norm=cpu0 --pin lm_head=cpu0"
        self.emplace(f"place model.onnx {how} --placer expert {pins} --pin loss=cpu0 -q -o beside.json")
        self.emplace(f"export model.onnx beside.json {how} -f device_map -o device_map.json")
        found = json.loads((self.folder / "device_map.json").read_text())
        self.assertEqual(set(found.values()), {0, "cpu"})

    def test_accelerate_dispatches_by_a_device_map(self):
        self.save_llama()
        needs_version("accelerate", "1.0")
        self.place_beside_the_cpu()
        self.need_gpu()
        self.assertIn("same", self.work("dispatch", "device_map.json", CUDA_VISIBLE_DEVICES=None))

    def test_transformers_loads_by_a_device_map(self):
        self.save_llama()
        needs_version("accelerate", "1.0")
        self.place_beside_the_cpu()
        self.need_gpu()
        self.assertIn("same", self.work("load_by_device_map", CUDA_VISIBLE_DEVICES=None))

    def test_accelerate_dispatches_to_one_device(self):
        self.save_llama()
        needs_version("accelerate", "1.0")
        how = "-c 2xcpu --granularity layer"
        self.emplace(f"place model.onnx {how} --placer single -q -o single.json")
        self.emplace(f"export model.onnx single.json {how} -f device_map -o device_map.json")
        self.assertIn("same", self.work("dispatch", "device_map.json"))

    def need_gpu(self):
        if "cuda" not in self.work("gpu", CUDA_VISIBLE_DEVICES=None):
            self.skipTest("needs a GPU")

    def test_transformers_exported_to_onnx_keeps_its_modules(self):
        self.save_llama()
        needs_version("accelerate", "1.0")
        needs_version("onnx", "1.14")
        self.work("export_llama")
        how = "-c 4xp100 --granularity layer"
        self.emplace(f"place exported.onnx {how} --placer expert -q -o exported.json")
        self.emplace(f"export exported.onnx exported.json {how} -f device_map -o device_map.json")
        self.work("check_device_map", "device_map.json")

    def test_transformers_loads_by_a_tp_plan(self):
        self.save_llama()
        kinds = set()
        for method in ("tofu", "all-row"):
            self.emplace(f"partition model.onnx -c 2xp100 --method {method} -q -o cut.json")
            self.emplace("export model.onnx cut.json -f tp_plan -o tp_plan.json")
            kinds |= set(json.loads((self.folder / "tp_plan.json").read_text()).values())
            with self.subTest(method):
                self.assertIn("same", self.work("load_by_tp_plan", processes=2))
        self.assertEqual(len(kinds), 4, kinds)

    # ---- PyTorch

    def test_dtensor_computes_with_a_plan(self):
        needs_version("torch", "2.5")
        for method in ("all-row", "model-parallel", "tofu"):
            self.emplace(f"partition plain.onnx -c 2xp100 --method {method} -q -o cut.json")
            self.emplace("export plain.onnx cut.json -f dtensor -o dtensor.json")
            with self.subTest(method):
                self.assertIn("same", self.work("dtensor", "dtensor.json", processes=2))

    def place_plain(self, name, pins, devices=2, rotary=PINS):
        how = f"-c {devices}xp100 --granularity layer --training"
        self.emplace(f"place plain.onnx {how} --placer expert {rotary} {pins} -q -o {name}.json")
        self.emplace(f"export plain.onnx {name}.json {how} -f torch-pipeline -o pipeline.json")
        self.emplace(f"export plain.onnx {name}.json {how} -f torch-schedule --micro-batches 4 -o schedule.csv")
        return json.loads((self.folder / "pipeline.json").read_text())["stages"]

    def test_a_pipeline_trains(self):
        needs_version("torch", "2.5")
        self.assertEqual(len(self.place_plain("row", "")), 2)
        for how in ("1F1B", "schedule.csv"):
            with self.subTest(how):
                self.assertIn("same", self.work("pipeline", how, processes=2))

    def test_a_pipeline_of_several_stages_on_a_device_trains(self):
        needs_version("torch", "2.5")
        pins = "--pin model.embed_tokens=gpu0 --pin model.norm=gpu1 --pin lm_head=gpu1 --pin loss=gpu1"
        layers = " ".join(f"--pin model.layers.{i}=gpu{i % 2}" for i in range(4))
        self.assertEqual([stage["rank"] for stage in self.place_plain("turns", f"{pins} {layers}")], [0, 1, 0, 1])
        self.assertIn("same", self.work("pipeline", "schedule.csv", processes=2))

    def test_a_pipeline_begins_on_any_gpu(self):
        needs_version("torch", "2.5")
        first, second = "gpu3", "gpu1"
        parts = {first: ["model.embed_tokens", "model.rotary", "model.layers.0", "model.layers.1"],
                 second: ["model.layers.2", "model.layers.3", "model.norm", "lm_head", "loss"]}
        pins = " ".join(f"--pin {module}={gpu}" for gpu, modules in parts.items() for module in modules)
        stages = self.place_plain("sparse", pins, devices=4, rotary="")
        self.assertEqual([(stage["rank"], stage["device"]) for stage in stages], [(0, first), (1, second)])
        for how in ("1F1B", "schedule.csv"):
            with self.subTest(how):
                self.assertIn("same", self.work("pipeline", how, processes=2))

    # ---- JAX

    def test_jax_computes_with_partition_specs(self):
        needs_version("jax", "0.5")
        for method, devices in (("all-row", 2), ("model-parallel", 2), ("tofu", 4)):
            self.emplace(f"partition plain.onnx -c {devices}xp100 --method {method} -q -o cut.json")
            self.emplace("export plain.onnx cut.json -f jax -o specs.json")
            self.emplace("export plain.onnx cut.json -f dtensor -o dtensor.json")
            flags = f"--xla_force_host_platform_device_count={devices}"
            with self.subTest(method):
                self.assertIn("same", self.work("jax", XLA_FLAGS=flags, JAX_PLATFORMS="cpu"))

    # ---- ONNX

    def test_onnx_runtime_chains_parts(self):
        needs_version("onnxruntime", "1.15")
        self.write_weights(needs("onnx"))
        self.emplace(self.placed + "onnx-parts -o parts")
        self.assertIn("same", self.work("onnx_parts", "model.onnx", "parts"))

    def test_onnx_reads_annotations_of_a_placement(self):
        onnx = self.annotated(self.placed, "placed.onnx")
        model = onnx.load(self.folder / "placed.onnx", load_external_data=False)
        configuration, = model.configuration
        self.assertEqual(configuration.num_devices, len(configuration.device))
        stages = collections.defaultdict(set)
        for node in model.graph.node:
            notes, = node.device_configurations
            self.assertEqual(notes.configuration_id, configuration.name)
            self.assertEqual([spec.tensor_name for spec in notes.sharding_spec], list(node.output))
            device, = {configuration.device[number] for spec in notes.sharding_spec for number in spec.device}
            self.assertEqual(device, self.device_of[node.name])
            stages[device].add(notes.pipeline_stage)
        self.assertEqual(sorted(map(sorted, stages.values())), [[0], [1], [2], [3]])

    def test_onnx_reads_annotations_of_a_partition(self):
        onnx = self.annotated(self.cut, "divided.onnx")
        model = onnx.load(self.folder / "divided.onnx", load_external_data=False)
        plan = json.loads(self.emplace(self.cut + "dtensor"))
        workers, = plan["mesh"]["shape"]
        found = {}
        for node in model.graph.node:
            for notes in node.device_configurations:
                for spec in notes.sharding_spec:
                    found[spec.tensor_name] = [(dim.axis, dim.simple_sharding[0].num_shards)
                                               for dim in spec.sharded_dim]
        for name, entry in plan["parameters"].items():
            cut = [(place["shard"], workers) for place in entry["placements"] if place != "replicate"]
            self.assertEqual(found[name], cut, name)

    def annotated(self, how, name):
        """A file with annotations, that ONNX's checker takes and ONNX Runtime runs as if they were not there."""
        needs_version("onnx", "1.18")
        needs_version("onnxruntime", "1.22")
        onnx = needs("onnx")
        self.write_weights(onnx)
        self.emplace(f"{how}onnx-devices -o {name}")
        onnx.checker.check_model(str(self.folder / name))
        self.assertIn("same", self.work("onnx_same", "model.onnx", name))
        return onnx


if __name__ == "__main__":
    main()
