#!/usr/bin/env python3
"""Checks that no source file has more than 600 lines; clang-tidy checks functions. Prints every file that has, and exits
1 if there is any."""

import pathlib
import sys

MOST = 600
FOLDERS = ["include", "src", "tests", "bench", "fuzz", "examples", "python", "tools", "web/src", "cmake"]
ENDINGS = {".cc", ".h", ".cu", ".py", ".pyi", ".sh", ".ts", ".tsx", ".css", ".cmake", ".cjs"}


def violations(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in ENDINGS or not path.is_file():
                continue
            lines = path.read_bytes().count(b"\n")
            if lines > MOST:
                yield f"{path.relative_to(root)}: {lines} lines; expected {MOST} at most"


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent
    found = list(violations(root))
    print("\n".join(found) if found else "no file is too long")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
