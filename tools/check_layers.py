#!/usr/bin/env python3
"""Checks that includes go down the layers of HACKING.md only, and that third-party headers stay in
the rooms that own them. Prints every violation; exits 1 if there is any."""

import pathlib
import re
import sys

LAYERS = {
    "base": 0,
    "graph": 1, "cluster": 1, "lp": 1, "dist": 1,
    "zoo": 2, "cost": 2,
    "sim": 3,
    "search": 4,
    "bound": 5,
    "placer": 6,
    "stream": 7, "selection": 7,
    "placers": 8, "learn": 8, "tensor": 8, "exec": 8,
    "io": 9,
    "run": 10,
    "report": 11,
    "api": 12, "cli": 12,
}

# Rooms of one layer that may be used all the same: (path of the user, room).
NEIGHBOURS = {(r"placers/learned/", "learn")}

# header pattern -> the paths (below src/) that may include it
OWNERS = {
    r"onnx/|google/protobuf/": r"io/onnx_",
    r"CLI/": r"cli/command_line\.cc",
    r"simdjson": r"io/",
    r"nlohmann/": r"(io|report|cli|placers/external)/",
    r"yaml-cpp/": r"io/",
    r"zlib|isa-l": r"(io/|learn/train/state\.cc)",
    r"metis\.h|scotch\.h|Clp|Cbc|Osi|Cgl|Coin": r"(lp|placers|stream|selection)/",
    r"tbb/|oneapi/": r"base/",
    r"hwloc": r"cluster/local_machine\.cc",
    r"torch/|ATen/|c10/": r"(learn|exec)/",
    r"mpi\.h|mpi/": r"dist/mpi_transport\.cc",
}

# Only the command line prints, exits or aborts.
FORBIDDEN = r"\b(std::cout|std::cerr|printf|fmt::print|std::exit|std::abort|abort\(\)|exit\()"


def violations(src: pathlib.Path):
    for path in sorted(src.rglob("*.[ch]*")):
        if path.suffix not in (".cc", ".h"):
            continue
        name = path.relative_to(src).as_posix()
        room = name.split("/")[0]
        if room not in LAYERS:
            yield f"{name}: '{room}' is not a known room"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{name}:{number}"
            if found := re.match(r'\s*#include "([^"]+)"', line):
                target = found[1].split("/")[0]
                if target not in LAYERS:
                    yield f"{where}: includes '{found[1]}', which is in no known room"
                elif any(re.match(user, name) and target == used for user, used in NEIGHBOURS):
                    pass
                elif target != room and LAYERS[target] >= LAYERS[room]:
                    yield f"{where}: {room} includes {found[1]}, which is not below it"
            if found := re.match(r"\s*#include <([^>]+)>", line):
                for header, owner in OWNERS.items():
                    if re.match(header, found[1]) and not re.match(owner, name):
                        yield f"{where}: includes <{found[1]}>, which only {owner} may"
            if room != "cli" and re.search(FORBIDDEN, line.split("//")[0]):
                yield f"{where}: only the command line prints or exits"


def main():
    src = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "src"
    found = list(violations(src))
    print("\n".join(found) if found else "layers hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
