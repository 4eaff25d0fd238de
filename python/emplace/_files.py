"""Files that results are saved to."""

from __future__ import annotations

import itertools
import os
import stat
from typing import TYPE_CHECKING, Any, Union

from ._emplace import Answer, Error, ProfileResult, TrainResult

if TYPE_CHECKING:
    Path = Union[str, "os.PathLike[str]"]

_counter = itertools.count()


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
    """All of it or nothing; gzipped where the name ends with .gz.

    As the program writes its files: what a link leads to is replaced, not the link, who may read a file
    stays as it was, and the content is on the disk before it has the name.
    """
    data = content.encode() if isinstance(content, str) else content
    if os.fspath(path).endswith(".gz"):
        import gzip

        data = gzip.compress(data, mtime=0)
    try:
        _replace(os.path.realpath(path), data)
    except OSError as error:
        raise Error(f"{path}: cannot be written ({error.strerror})") from error


def path_text(path: Any) -> Any:
    """A path as the C++ side takes it; what is none is left to be refused there."""
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def _replace(target: str, data: bytes) -> None:
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # a device, a pipe
        with open(target, "wb") as file:
            file.write(data)
        return
    # What is to replace a file is nobody else's before it has that one's mode; of a new one the umask decides.
    temporary, handle = _open_beside(target, 0o666 if mode is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def _open_beside(target: str, mode: int) -> tuple[str, int]:
    """A new file, with its name. One that is there is what a process that was killed has left."""
    while True:
        name = f"{target}.tmp-{os.getpid()}-py{next(_counter)}"
        try:
            return name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except FileExistsError:
            pass
