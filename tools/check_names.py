#!/usr/bin/env python3
"""Checks that names at file scope differ within a folder whose files are compiled together (emplace_together in
cmake/library.cmake): there, alike names would be redefinitions, or overloads that nobody meant. Prints every
violation; exits 1 if there is any."""

import collections
import pathlib
import re
import sys

# As in cmake/library.cmake.
APART = {"src/sim", "src/zoo", "src/placers/local", "src/placers/common", "src/placers/search"}

FUNCTION = re.compile(r"^(?:constexpr |inline |static )*[A-Za-z_][\w:<>,&*\s\[\]]*?[\s&*>](\w+)\(")
TYPE = re.compile(r"^(?:class|struct|enum class|enum|using) (\w+)")
CONSTANT = re.compile(r"^(?:constexpr|const|inline constexpr) [^=({]*?[\s&*>](\w+)(?:\[\w*\])?\s*(?:=|\{|\()")


def names(path):
    """What the file's anonymous namespaces define."""
    inside = False
    for line in path.read_text().splitlines():
        if line.startswith("namespace {"):
            inside = True
        elif line.startswith("}  // namespace"):
            inside = inside and line.strip() != "}  // namespace"
        elif inside and not line.startswith((" ", "}", "/", "#", "TEST", "INSTANTIATE", "EMPLACE_")):
            found = CONSTANT.match(line) or TYPE.match(line) or FUNCTION.match(line)
            if found and not line.rstrip().endswith(";") or (found and CONSTANT.match(line)):
                yield found[1]


def violations(root):
    folders = collections.defaultdict(list)
    for path in sorted([*root.glob("src/**/*.cc"), *root.glob("tests/**/*.cc"),
                        *root.glob("python/**/*.cc"), *root.glob("bench/reproduce/*.cc")]):
        folder = path.parent.relative_to(root).as_posix()
        if folder not in APART:
            folders[folder].append(path)
    for folder, paths in folders.items():
        users = collections.defaultdict(set)
        for path in paths:
            for name in set(names(path)) - {"PrintTo"}:  # overloaded on purpose
                users[name].add(path.name)
        for name, files in sorted(users.items()):
            if len(files) > 1:
                yield f"{folder}: '{name}' is in {', '.join(sorted(files))}"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent
    found = list(violations(root))
    print("\n".join(found) if found else "names differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
