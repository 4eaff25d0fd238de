"""The placers as functions that give specs: `emplace.placers.heft(insertion=False)`.

>>> import emplace
>>> emplace.placers.metis(imbalance=1.2)
'metis(imbalance=1.2)'
>>> "metis" in dir(emplace.placers)
True

`help(emplace.placers.metis)` shows its options. `place` and `compare` take specs.
"""

from __future__ import annotations

from typing import Any, Callable

from . import _emplace


def spec(placer: str, options: dict[str, object]) -> str:
    """A placer's key with its options, as text."""
    from ._models import _written

    written = ",".join(f"{key}={_written(value)}" for key, value in options.items())
    if options and placer.endswith(")"):
        raise _emplace.Error(f"{', '.join(options)}: '{placer}' has its options already")
    return f"{placer}({written})" if written else placer


def __dir__() -> list[str]:
    return [info.key for info in _emplace.list_placers()]


def __getattr__(key: str) -> Callable[..., str]:
    for info in _emplace.list_placers():
        if info.key == key:
            return _function(info)
    raise AttributeError(f"no placer '{key}'; there are: {', '.join(__dir__())}")


def _function(info: _emplace.MethodInfo) -> Callable[..., str]:
    import inspect

    known = [option.name for option in info.options]

    def placer(**options: Any) -> str:
        for name in options:
            if name not in known:
                raise TypeError(f"{info.key}: no option '{name}'; there are: {', '.join(known) or 'none'}")
        return spec(info.key, options)

    lines = [info.summary, "", f"Reference: {info.reference}", ""]
    lines += [f"{o.name} ({o.range}; {o.default_value or 'none'}): {o.help}" for o in info.options]
    placer.__name__ = placer.__qualname__ = info.key
    placer.__doc__ = "\n".join(lines)
    parameters = [
        inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=_Default(option.default_value))
        for option in info.options
    ]
    placer.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    return placer


class _Default(str):
    """Shown as it is written."""

    def __repr__(self) -> str:
        return str(self) or "''"
