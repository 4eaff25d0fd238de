"""Models and problems, with the shorthands that Python allows."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union

from . import _emplace
from ._emplace import Cluster, Graph, Model, OpView, Problem

if TYPE_CHECKING:
    Path = Union[str, "os.PathLike[str]"]

CostFunction = Callable[[OpView, str, str], Optional[float]]


def zoo(name: str, **options: object) -> Model:
    """A model of the zoo; `zoo_models()` lists them with their options: `training=False` is the forward pass alone.

    >>> import emplace
    >>> emplace.zoo("resnet-50", batch=64)
    <Model resnet-50,batch=64>
    >>> emplace.zoo("resnet-50", training=False).graph.training
    False
    """
    written = ",".join(f"{key}={_written(value)}" for key, value in options.items())
    whole = f"zoo:{name}:{written}" if written else f"zoo:{name}"
    return _emplace.read_model(whole)


def compile(
    model: Union[Graph, Model, Path],
    cluster: Union[Cluster, Path, None] = None,
    *,
    cost: str = "auto",
    fuse: bool = False,
    pin: Sequence[str] = (),
    forbid: Sequence[str] = (),
    costs: Optional[CostFunction] = None,
    in_place: str = "sums",
) -> Problem:
    """A graph on a cluster, with every duration known.

    Models and clusters may also be given as `read_model` and `read_cluster` take them. `cost` says
    where op times come from ('auto': measured where the graph has them, else estimated);
    `costs(op, device, kind)` gives microseconds of your own, or None where it knows none. `pin` and
    `forbid` are rules such as 'encoder.*=gpu0,gpu1'; `fuse` makes elementwise chains one kernel each;
    `in_place` ('none', 'sums' or 'all') says which ops write over an input that nobody else reads.

    >>> import emplace
    >>> emplace.compile("zoo:alexnet", "4xp100", pin=["*=gpu0,gpu1"])
    <Problem: alexnet on 4xp100>
    """
    if isinstance(model, (str, os.PathLike)):
        model = _emplace.read_model(model)
    if isinstance(model, Model):
        if cluster is None:
            cluster = model.cluster
        model = model.graph
    if cluster is None:
        raise _emplace.Error("cluster: expected one, as the model brings none")
    if isinstance(cluster, (str, os.PathLike)):
        cluster = _emplace.read_cluster(cluster)
    return _emplace.compile(
        model, cluster, cost, fuse, _texts(pin, "pin"), _texts(forbid, "forbid"), costs and _checked(costs), in_place
    )


def _checked(costs: CostFunction) -> CostFunction:
    def ask(op: OpView, device: str, kind: str) -> Optional[float]:
        found: Any = costs(op, device, kind)
        if found is None:
            return None
        if isinstance(found, (str, bytes)) or not hasattr(found, "__float__"):
            raise _emplace.Error(
                f"costs: gave {found!r} for op '{op.name}' on '{device}'; expected microseconds, or None"
            )
        return float(found)

    return ask


def _texts(rules: Sequence[str], what: str) -> list[str]:
    if isinstance(rules, str):
        raise _emplace.Error(f"{what}: expected a list of rules, not one text")
    return list(rules)


def _written(value: object) -> str:
    """An option's value as specs have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if any(character in text for character in ",()"):
        quote = '"' if "'" in text else "'"
        return f"{quote}{text}{quote}"
    return text
