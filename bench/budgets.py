#!/usr/bin/env python3
"""How long placers take that are given a second, on graphs of any size.

    bench/budgets.py PROGRAM [--ops 1000000] [--time 1] [--placers heft,dp,...] [--cluster 4xp100]

A generated graph of layers of ten ops, each of which reads two of the layer before. For each placer: seconds that the
search took by the clock, processor time of the process beyond that of `single` (reading and reporting), whether a note
said beforehand that it would take longer, and whether it kept to a tenth more than its time and 0.2 s. On a busy machine
the processor time is the one to look at."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ALL = ("heft m_topo m_etf m_sct expert metis scotch critical_path mite batch_split dp ip hill_climb anneal lns genetic auto "
       "post placeto gdp hdp mars spotlight colocrl").split()


def write_graph(path: pathlib.Path, count: int) -> None:
    with open(path, "w") as file:
        file.write('{"format": "emplace.graph/1", "name": "layers", "tensors": [')
        file.write(",".join('{"bytes": %d}' % (1000 + i % 7 * 100) for i in range(count)))
        file.write('], "ops": [')
        for i in range(count):
            inputs = sorted({i - 10, i - 10 - i % 3}) if i >= 13 else []
            file.write('%s{"name": "o%d", "type": "mm", "module": "layer.%d", "inputs": %s, "outputs": [%d], "time_us": {"*": %d}}' %
                       ("," if i else "", i, i // 100, inputs, i, 1 + i % 5))
        file.write("]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--ops", type=int, default=1_000_000)
    parser.add_argument("--time", type=float, default=1)
    parser.add_argument("--placers", default=",".join(ALL))
    parser.add_argument("--cluster", default="4xp100")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        graph = pathlib.Path(folder) / "layers.json"
        write_graph(graph, arguments.ops)

        def run(placer: str) -> tuple[float, float, float, str]:
            """Wall and processor seconds of the process, seconds of the search, what it said."""
            with open(pathlib.Path(folder) / "out", "w+") as out, open(pathlib.Path(folder) / "err", "w+") as err:
                begin = time.monotonic()
                process = subprocess.Popen([arguments.program, "place", graph, "-c", arguments.cluster, "-p", placer, "--time",
                                            f"{arguments.time}s", "--threads", "1", "--json"], stdout=out, stderr=err)
                _, status, usage = os.wait4(process.pid, 0)
                wall = time.monotonic() - begin
                out.seek(0)
                err.seek(0)
                said = err.read()
                if os.waitstatus_to_exitcode(status) not in (0, 1):
                    return wall, usage.ru_utime + usage.ru_stime, -1, said[-200:]
                return wall, usage.ru_utime + usage.ru_stime, json.loads(out.read())["seconds"], said

        base = min(run("single")[1] for _ in range(2))
        most = 1.1 * arguments.time + 0.2
        print(f"{arguments.ops} ops, --time {arguments.time:g}s: reading and reporting take {base:.1f} s of processor time")
        print(f"{'placer':14} {'search s':>9} {'processor s':>12}  kept")
        for placer in arguments.placers.split(","):
            wall, processor, search, said = run(placer)
            own = processor - base
            told = "takes about" in said
            kept = "yes" if search <= most else "by processor time" if own <= most else "no, as it said" if told else "NO"
            print(f"{placer:14} {search:9.2f} {own:12.2f}  {kept if search >= 0 else said}", flush=True)


if __name__ == "__main__":
    main()
