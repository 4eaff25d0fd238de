#!/usr/bin/python3
"""Whether captured models compute the same in parts: python3-onnx, and npm's onnxruntime-node in NODE_PATH.

Usage: bench/onnx_parts.py EMPLACE [NAME ...]. Models are NAME.onnx.gz in ../shared/data/graphs, or where GRAPHS points
(without names, all that are there), whose weights are absent: random ones of their sizes take their place. Each is
placed by several placers, and ONNX Runtime computes the whole and the parts on the same inputs. Says how many parts
there are; ends with 1 where an output differs by a bit."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = pathlib.Path(os.environ.get("GRAPHS", ROOT.parent / "shared/data/graphs"))
RUN_PARTS = ROOT / "tests/endtoend/run_parts.cjs"
PLACERS = ["heft", "metis", "random"]
CLUSTER = "4xp100"


def write_model(name, folder):
    """The model, and its weights as far as they lie beside it."""
    model = gzip.decompress((MODELS / f"{name}.onnx.gz").read_bytes())
    (folder / "model.onnx").write_bytes(model)
    ends = {}
    for tensor in onnx.load_model_from_string(model).graph.initializer:
        entry = {item.key: item.value for item in tensor.external_data}
        if entry:
            end = int(entry["offset"]) + int(entry["length"])
            ends[entry["location"]] = max(end, ends.get(entry["location"], 0))
    draw = numpy.random.default_rng(1)
    for location, end in ends.items():
        # As bytes of floats: integers that lie there would be wild, and no model here has any.
        (draw.standard_normal(end // 4, dtype=numpy.float32) * 0.05).tofile(folder / location)


def run(words, folder):
    return subprocess.run([str(word) for word in words], cwd=folder, capture_output=True, text=True)


def compared(emplace, placer, folder):
    """How many parts, and what became of them."""
    how = ["-c", CLUSTER, "-q"]
    for words in (["place", "model.onnx", *how, "-p", placer, "--evaluations", "1", "-o", "placement.json"],
                  ["export", "model.onnx", "placement.json", "-c", CLUSTER, "-f", "onnx-parts", "-o", "parts"]):
        done = run([emplace, *words], folder)
        if done.returncode not in (0, 1):  # 1: memory is short, which ONNX Runtime does not mind
            return None, f"failed: {done.stderr.strip()}"
    manifest = json.loads((folder / "parts/manifest.json").read_text())
    done = run(["node", RUN_PARTS, "model.onnx", "parts"], folder)
    said = done.stderr.strip()[-200:] or f"ended with {done.returncode}"  # negative: killed, as for want of memory
    return len(manifest["parts"]), "same" if done.returncode == 0 else f"not the same: {said}"


def main():
    emplace = pathlib.Path(sys.argv[1]).resolve()
    names = sys.argv[2:] or sorted(path.name.removesuffix(".onnx.gz") for path in MODELS.glob("*.onnx.gz"))
    if not names:
        print(f"skipped: no models in {MODELS}")
        return 0
    if run(["node", "-e", "require('onnxruntime-node')"], ROOT).returncode != 0:
        print("skipped: needs npm's onnxruntime-node in NODE_PATH")
        return 0
    bad = 0
    for name in names:
        for placer in PLACERS:
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary)
                write_model(name, folder)
                parts, verdict = compared(emplace, placer, folder)
                bad += verdict != "same"
                print(f"{name:22} {placer:8} {parts or '-':>5} parts  {verdict}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
