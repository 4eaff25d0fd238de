"""No second libtorch is loaded: two in one process corrupt each other. Learned placers are refused where
another PyTorch is there; here another PyTorch is, where one of them has run."""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from typing import TYPE_CHECKING, Any, Optional

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

_LIBRARY = "libtorch_cpu.so"


class Watch:
    """Finds torch as the others do, and looks at what was found before it is loaded."""

    def __init__(self) -> None:
        self._looking: set[int] = set()  # threads, as other finders may ask all finders, too

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        thread = get_ident()
        if name != "torch" or thread in self._looking:
            return None
        self._looking.add(thread)
        try:
            spec = self._found_by_others(name, path, target)
        finally:
            self._looking.discard(thread)
        if spec is not None:
            wrong = _why_not(spec)
            if wrong:
                spec.loader = _Refusing(wrong)  # type: ignore[assignment]
        return spec

    def _found_by_others(self, name: str, path: Any, target: Any) -> Optional[ModuleSpec]:
        for finder in sys.meta_path:
            find: Any = None if finder is self else getattr(finder, "find_spec", None)
            spec: Optional[ModuleSpec] = find(name, path, target) if find else None
            if spec is not None:
                return spec
        return None


class _Refusing:
    """In place of a loader: whoever only asks whether there is a torch is told so."""

    def __init__(self, why: str) -> None:
        self._why = why

    def create_module(self, spec: ModuleSpec) -> None:
        raise ImportError(self._why, name=spec.name, path=spec.origin)

    def exec_module(self, module: Any) -> None:
        """Is not reached."""


def _why_not(spec: ModuleSpec) -> str:
    """Empty where this process has no libtorch, or the same."""
    for folder in spec.submodule_search_locations or ():
        own = os.path.join(folder, "lib", _LIBRARY)
        for other in loaded():
            if os.path.exists(own) and os.path.exists(other) and not os.path.samefile(own, other):
                return (
                    f"{folder} needs {own}, but this process has loaded another PyTorch's, {other}, as emplace's "
                    "learned placers need it: use a process in which none has run, or a build of emplace against "
                    "that PyTorch"
                )
    return ""


def loaded() -> set[str]:
    """The libtorch that are in this process."""
    try:
        with open("/proc/self/maps") as maps:
            lines = maps.read().splitlines()
    except OSError:  # not on this system
        return set()
    return {path for path in (line[line.find("/") :] for line in lines if "/" in line)
            if os.path.basename(path).startswith(_LIBRARY)}


def watch() -> None:
    """Once in a process; by name, as a package that is imported anew has another class."""
    if not any(type(finder).__name__ == Watch.__name__ and type(finder).__module__ == __name__
               for finder in sys.meta_path):
        sys.meta_path.insert(0, Watch())
