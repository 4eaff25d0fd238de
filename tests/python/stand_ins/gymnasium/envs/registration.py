import importlib

registry = {}


def register(id, entry_point, **kwargs):
    assert id not in registry, f"{id} would be registered twice"
    registry[id] = (entry_point, kwargs)


def make(id, **kwargs):
    from ..core import Env

    entry_point, own = registry[id]
    module, _, name = entry_point.partition(":")
    environment = getattr(importlib.import_module(module), name)(**{**own, **kwargs})
    if not isinstance(environment.unwrapped, Env):
        raise TypeError("the environment must inherit from gymnasium.Env")
    return environment
