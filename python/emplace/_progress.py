"""A line that says how far a search has come, on a terminal or in a notebook."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Union

Function = Callable[[str, float], None]


@contextmanager
def shown(progress: Union[bool, Function, None]) -> Iterator[Optional[Function]]:
    """The function to call, while the search runs; what was shown is removed in the end."""
    if progress is None or progress is False:
        yield None
    elif progress is not True:
        if not callable(progress):
            raise TypeError("progress: expected True, or a function of (line, seconds)")
        yield progress
    elif _in_notebook():
        yield from _in_cell()
    else:
        yield from _on_terminal()


def _in_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _in_cell() -> Iterator[Function]:
    from IPython.display import display

    handle = display({"text/plain": ""}, raw=True, display_id=True)

    def show(line: str, seconds: float) -> None:
        handle.update({"text/plain": f"{seconds:.0f} s  {line}"}, raw=True)

    try:
        yield show
    finally:
        handle.update({"text/plain": ""}, raw=True)


def _on_terminal() -> Iterator[Function]:
    if not sys.stderr.isatty():
        yield lambda line, seconds: None
        return
    import shutil

    def show(line: str, seconds: float) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r\x1b[K" + f"{seconds:.0f} s  {line}"[:width])
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
