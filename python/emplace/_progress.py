"""A line that says how far long work has come, on a terminal or in a notebook."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Union

Function = Callable[[str, float], None]
_BAR = 20


@contextmanager
def shown(progress: Union[bool, Function, None], seconds: Optional[float] = None) -> Iterator[Optional[Function]]:
    """The function to call while the work goes on; what was shown is removed in the end.

    `seconds` is how long it may take, where that is known: then there is a bar.
    """
    if progress is None or progress is False:
        yield None
    elif progress is not True:
        if not callable(progress):
            raise TypeError("progress: expected True, or a function of (line, seconds)")
        yield progress
    elif _in_notebook():
        yield from _in_cell(seconds)
    else:
        yield from _on_terminal(seconds)


def _in_notebook() -> bool:
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _in_cell(total: Optional[float]) -> Iterator[Function]:
    from html import escape

    from IPython.display import display

    def content(line: str, seconds: float) -> dict[str, str]:
        if not line:
            return {"text/plain": "", "text/html": ""}
        bar = f'<progress value="{min(seconds, total):.2f}" max="{total:g}"></progress> ' if total else ""
        return {
            "text/plain": _line(line, seconds, total),
            "text/html": f"{bar}{_clock(seconds, total)}&#160; <code>{escape(line)}</code>",
        }

    handle = display(content("", 0), raw=True, display_id=True)

    def show(line: str, seconds: float) -> None:
        handle.update(content(line, seconds), raw=True)

    try:
        yield show
    finally:
        handle.update(content("", 0), raw=True)


def _on_terminal(total: Optional[float]) -> Iterator[Function]:
    if not sys.stderr.isatty():
        yield lambda line, seconds: None
        return
    import shutil

    # Terminals that cannot erase are written over.
    dumb = os.environ.get("TERM", "") in ("", "dumb")

    def put(text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r" + text[:width].ljust(width) + "\r" if dumb else "\r\x1b[K" + text[:width])
        sys.stderr.flush()

    try:
        yield lambda line, seconds: put(_line(line, seconds, total))
    finally:
        put("")


def _clock(seconds: float, total: Optional[float]) -> str:
    return f"{seconds:.0f} of {total:g} s" if total else f"{seconds:.0f} s"


def _line(line: str, seconds: float, total: Optional[float]) -> str:
    """As text.

    >>> _line("best 3 ms", 2.4, 10)
    '[#####...............] 2 of 10 s  best 3 ms'
    >>> _line("best 3 ms", 2.4, None)
    '2 s  best 3 ms'
    """
    text = f"{_clock(seconds, total)}  {line}"
    if not total:
        return text
    done = round(_BAR * min(1.0, seconds / total))
    return f"[{'#' * done}{'.' * (_BAR - done)}] {text}"
