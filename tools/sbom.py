#!/usr/bin/env python3
"""The software bill of materials of a build: what its binaries link, and headers that are compiled into them.

    tools/sbom.py BUILD [-o FILE]

SPDX 2.3 as JSON. Checksums are those of the build; packages have the same files without their symbols. Packages,
versions, sources and licences are dpkg's and those of Debian's copyright files; libraries that no package owns end it
with exit code 1. The same build gives the same file: its date is that of the last commit,
or SOURCE_DATE_EPOCH."""

import argparse
import datetime
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Their headers are compiled into the binaries, with nothing left to link.
HEADERS_ONLY = ["nlohmann-json3-dev", "libcli11-dev", "pybind11-dev"]
BINARIES = ["emplace", "libemplace.so", "libemplace_torch.so", "libemplace_mpi.so", "python/emplace/_emplace*.so"]
# Short names of Debian's copyright files that SPDX spells otherwise; all others are kept as they are said.
SPDX_NAMES = {"Apache-2.0": "Apache-2.0", "Apache-2": "Apache-2.0", "BSD-2-clause": "BSD-2-Clause",
              "BSD-3-clause": "BSD-3-Clause", "BSD-3-Clause": "BSD-3-Clause", "Expat": "MIT", "MIT": "MIT",
              "GPL-2": "GPL-2.0-only", "GPL-2+": "GPL-2.0-or-later", "GPL-3": "GPL-3.0-only",
              "GPL-3+": "GPL-3.0-or-later", "LGPL-2.1": "LGPL-2.1-only", "LGPL-2.1+": "LGPL-2.1-or-later",
              "LGPL-3": "LGPL-3.0-only", "LGPL-3+": "LGPL-3.0-or-later", "EPL-1": "EPL-1.0", "EPL-1.0": "EPL-1.0",
              "EPL-2.0": "EPL-2.0", "Zlib": "Zlib", "zlib": "Zlib", "CeCILL-C": "CECILL-C"}


def output(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def needed(binary: pathlib.Path) -> list[str]:
    """Names of the libraries that it links itself."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-d", str(binary)))


def resolved(binary: pathlib.Path) -> dict[str, str]:
    """Where the loader finds each library."""
    listed = output("ldd", str(binary))
    loader = {os.path.basename(path): path for path in re.findall(r"^\s*(/\S+) \(", listed, re.MULTILINE)}
    return {**loader, **dict(re.findall(r"(\S+) => (/\S+)", listed))}


@functools.lru_cache(maxsize=None)
def owner(path: str) -> str | None:
    """The Debian package of a file. Where /lib is a link to /usr/lib, dpkg may know it by either name."""
    real = os.path.realpath(path)
    for name in dict.fromkeys([path, real, real.removeprefix("/usr")]):
        try:
            return output("dpkg", "-S", name).splitlines()[0].split(":")[0]
        except subprocess.CalledProcessError:
            continue
    return None


@functools.lru_cache(maxsize=None)
def licences(package: str) -> list[str]:
    """What the package's copyright file names, in SPDX's words where there are such."""
    path = pathlib.Path("/usr/share/doc") / package / "copyright"
    if not path.is_file():
        return []
    names = re.findall(r"^License: *(\S[^\n]*)$", path.read_text(errors="replace"), re.MULTILINE)
    return sorted({SPDX_NAMES.get(name.strip(), name.strip()) for name in names})


def described(package: str) -> dict:
    fields = output("dpkg-query", "-W", "-f=${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t"
                    "${Homepage}\n", package).splitlines()[0].split("\t")
    version, architecture, source, source_version, homepage = fields
    names = licences(package)
    known = names and all(name in SPDX_NAMES.values() for name in names)
    described = {
        "SPDXID": "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", package),
        "name": package,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": " AND ".join(names) if known else "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "sourceInfo": f"Debian source package {source} {source_version}",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                          "referenceLocator": f"pkg:deb/debian/{package}@{version}?arch={architecture}"}],
    }
    if names and not known:
        described["licenseComments"] = "Debian's copyright file names: " + ", ".join(names)
    if homepage:
        described["homepage"] = homepage
    return described


def date() -> str:
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is None:
        try:
            seconds = output("git", "-C", str(ROOT), "log", "-1", "--format=%ct").strip()
        except (subprocess.CalledProcessError, FileNotFoundError):
            seconds = "0"
    return datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def version() -> str:
    return re.search(r"-- \S+ (\S+)", output("cmake", "-P", str(ROOT / "cmake/version.cmake")))[1]


def bill(build: pathlib.Path) -> dict:
    binaries = [path for pattern in BINARIES for path in sorted(build.glob(pattern)) if path.is_file()]
    if not binaries:
        sys.exit(f"{build}: has none of {', '.join(BINARIES)}; build it first")
    ours = {path.name for path in binaries} | {os.path.basename(os.path.realpath(path)) for path in binaries}
    files, packages, relations = [], {}, []
    main = "SPDXRef-Package-emplace"
    for binary in binaries:
        content = binary.read_bytes()
        name = str(binary.relative_to(build))
        file_id = "SPDXRef-File-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        files.append({"SPDXID": file_id, "fileName": "./" + name, "fileTypes": ["BINARY"],
                      "checksums": [{"algorithm": "SHA1", "checksumValue": hashlib.sha1(content).hexdigest()},
                                    {"algorithm": "SHA256", "checksumValue": hashlib.sha256(content).hexdigest()}],
                      "licenseConcluded": "Apache-2.0", "copyrightText": "NOASSERTION"})
        relations.append((main, "CONTAINS", file_id))
        found = resolved(binary)
        for library in needed(binary):
            if library in ours or library.startswith("libemplace"):
                continue
            package = owner(found[library]) if library in found else None
            if package is None:
                sys.exit(f"{name}: links {library}, which no package owns")
            packages.setdefault(package, described(package))
            relations.append((file_id, "DYNAMIC_LINK", packages[package]["SPDXID"]))
    for package in HEADERS_ONLY:
        try:
            packages.setdefault(package, described(package))
        except subprocess.CalledProcessError:
            continue  # built without it
        relations.append((main, "STATIC_LINK", packages[package]["SPDXID"]))
    text = version()
    verification = hashlib.sha1("".join(sorted(file["checksums"][0]["checksumValue"]
                                               for file in files)).encode()).hexdigest()
    own = {"SPDXID": main, "name": "emplace", "versionInfo": text, "downloadLocation": "NOASSERTION",
           "filesAnalyzed": True, "packageVerificationCode": {"packageVerificationCodeValue": verification},
           "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION",
           "licenseInfoFromFiles": ["Apache-2.0"], "supplier": "NOASSERTION"}
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"emplace-{text}",
        "documentNamespace": f"https://spdx.org/spdxdocs/emplace-{text}-{verification}",
        "creationInfo": {"created": date(), "creators": ["Tool: emplace/tools/sbom.py"]},
        "packages": [own] + [packages[name] for name in sorted(packages)],
        "files": files,
        "relationships": [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                           "relatedSpdxElement": main}] +
                         [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in dict.fromkeys(relations)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path)
    arguments = parser.parse_args()
    text = json.dumps(bill(arguments.build.resolve()), indent=1) + "\n"
    if arguments.output:
        arguments.output.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
