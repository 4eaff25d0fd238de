"""Files that results are saved to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Union

from ._emplace import Answer, Error, ProfileResult, TrainResult

if TYPE_CHECKING:
    Path = Union[str, "os.PathLike[str]"]


def save_placement(answer: Answer, path: Path) -> None:
    """Writes a placement file."""
    write(path, answer.placement_json())


def save_policy(result: TrainResult, path: Path) -> None:
    """Writes a policy file, for 'gdp(policy=FILE)'."""
    write(path, result.policy)


def save_profile(result: ProfileResult, path: Path) -> None:
    """Writes the graph, and the cluster beside it as .yaml."""
    write(path, result.graph.to_json())
    write(os.fspath(path).removesuffix(".gz").removesuffix(".json") + ".yaml", result.cluster.to_yaml())


def write(path: Path, content: Union[str, bytes]) -> None:
    """All of it or nothing; gzipped where the name ends with .gz."""
    import tempfile

    data = content.encode() if isinstance(content, str) else content
    if os.fspath(path).endswith(".gz"):
        import gzip

        data = gzip.compress(data, mtime=0)
    folder, name = os.path.split(os.fspath(path))
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder or ".")
    except OSError as error:
        raise Error(f"{path}: cannot be written ({error.strerror})") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        os.unlink(temporary)
        raise Error(f"{path}: cannot be written ({error.strerror})") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
