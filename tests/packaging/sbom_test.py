#!/usr/bin/env python3
"""sbom_test.py SOURCE BUILD: the bill of materials is SPDX, complete, and the same twice."""

import json
import pathlib
import shutil
import subprocess
import sys

SOURCE, BUILD = map(pathlib.Path, sys.argv[1:3])
if not all(shutil.which(tool) for tool in ("dpkg", "readelf", "ldd")):
    sys.exit(77)


def made() -> str:
    return subprocess.run([SOURCE / "tools/sbom.py", BUILD], check=True, stdout=subprocess.PIPE, text=True).stdout


text = made()
assert made() == text, "the same build gives the same bill"
bill = json.loads(text)
assert bill["spdxVersion"] == "SPDX-2.3" and bill["dataLicense"] == "CC0-1.0"
assert bill["SPDXID"] == "SPDXRef-DOCUMENT" and bill["creationInfo"]["creators"]
ids = [item["SPDXID"] for item in bill["packages"] + bill["files"]]
assert len(ids) == len(set(ids)), "identifiers are used once"
for relation in bill["relationships"]:
    assert relation["relatedSpdxElement"] in ids, relation
    assert relation["spdxElementId"] in [*ids, "SPDXRef-DOCUMENT"], relation
packages = {package["name"]: package for package in bill["packages"]}
for name, package in packages.items():
    assert package["versionInfo"] and package["downloadLocation"] and package["licenseDeclared"], name
# Of each way in which something gets into the binaries: linked by the program, by the library, compiled in.
for expected in ("emplace", "libc6", "libstdc++6", "libfmt9", "zlib1g", "nlohmann-json3-dev"):
    assert expected in packages, (expected, sorted(packages))
names = [file["fileName"] for file in bill["files"]]
assert "./emplace" in names and "./libemplace.so" in names, names
print(f"{len(packages) - 1} packages, {len(names)} files")
