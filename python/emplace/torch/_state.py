"""A model's parameters and buffers, each once, and the model with others in their place."""
import contextlib
from dataclasses import dataclass

import torch

from ._errors import Error


@dataclass
class State:
    """A parameter or buffer, once, under all the names that the model has for it."""
    names: list
    owner: torch.nn.Module  # of the first name
    kind: str               # "_parameters" or "_buffers"

    @property
    def name(self):
        return self.names[0]

    @property
    def value(self):
        """What the model has now: casts and assignments put another tensor there."""
        value = getattr(self.owner, self.kind).get(self.name.rpartition(".")[2])
        if value is None:
            raise Error(f"'{self.name}': the model has it no more; expected the model as captured")
        return value


def states_of(model, kind):
    """Tied ones once; 1.13's named_parameters() cannot be asked for every name."""
    found = {}
    for path, module in model.named_modules(remove_duplicate=False):
        for key, value in getattr(module, kind).items():
            if value is not None:
                name = f"{path}.{key}" if path else key
                found.setdefault(id(value), State([], module, kind)).names.append(name)
    return list(found.values())


@contextlib.contextmanager
def unchanged(states):
    """What runs inside may not write into these; where it does, they get back what they had."""
    saved = [None if state.value.is_meta else state.value.detach().clone() for state in states]
    written = []
    try:
        yield
    finally:
        with torch.no_grad():
            for state, before in zip(states, saved):
                if before is not None and not _same(state.value.detach(), before):
                    state.value.data.copy_(before)
                    written.append(state.name)
    if written:
        raise written_error(written[0])


def _same(one, other):
    """Bit for bit, but for what a NaN looks like."""
    return torch.equal(one, other) or bool(
        ((one == other) | ((one != one) & (other != other))).all())


def written_error(name, line=""):
    return Error((f"{line}: " if line else "") + f"forward writes into the parameter '{name}'; "
                 "expected one that reads its parameters alone, and keeps what it changes in buffers")


@contextlib.contextmanager
def swapped(model, states, values):
    """The model with other parameters and buffers, under all their names. What its code makes of
    them (a buffer may be assigned anew) is read from `read()` before the end."""
    slots = []
    for state in states:
        for name in state.names:
            path, _, key = name.rpartition(".")
            owner = model.get_submodule(path)
            table = owner._parameters if key in owner._parameters else owner._buffers
            slots.append((table, key, table[key]))
    recurrent = [module for module in model.modules() if isinstance(module, torch.nn.RNNBase)]
    flat = [module._flat_weights for module in recurrent]
    try:
        position = 0
        for state, value in zip(states, values):
            for _ in state.names:
                table, key, _ = slots[position]
                table[key] = value
                position += 1
        for module in recurrent:  # keeps a list of its own
            module._flat_weights = [getattr(module, name, None)
                                    for name in module._flat_weights_names]

        def read():
            found, first = [], 0
            for state in states:
                table, key, _ = slots[first]
                found.append(table[key])
                first += len(state.names)
            return found

        yield read
    finally:
        for table, key, value in slots:
            table[key] = value
        for module, weights in zip(recurrent, flat):
            module._flat_weights = weights


class Attributes:
    """Tensors that modules keep as attributes of their own, neither parameters nor buffers. A step does not hand them
    on, so a forward that reads what an earlier call has left there cannot be captured."""

    def __init__(self, model):
        self._model = model
        self._others = {(module, key): value for module in model.modules() for key, value in vars(module).items()
                        if not isinstance(value, torch.Tensor)}
        self._before = {(module, key): (value, _writes_into(value), value.detach().clone())
                        for module, key, value in self._there()}

    def _there(self):
        return [(module, key, value) for module in self._model.modules() for key, value in vars(module).items()
                if isinstance(value, torch.Tensor) and not value.is_meta]

    def changed(self):
        """(module, key, the tensor that was there or None) of those that were assigned or written into."""
        found = []
        for module, key, value in self._there():
            old, writes, _ = self._before.get((module, key), (None, 0, None))
            if value is not old or _writes_into(value) != writes:
                found.append((module, key, old))
        return found

    def constant(self):
        """Tensors that are what they were."""
        changed = {(module, key) for module, key, _ in self.changed()}
        return [value for module, key, value in self._there() if (module, key) not in changed]

    def written(self):
        return [(module, key) for module, key, old in self.changed() if vars(module)[key] is old]

    def restore(self):
        for module, key, old in self.changed():
            if old is None and (module, key) in self._others:
                vars(module)[key] = self._others[module, key]
            elif old is None:
                del vars(module)[key]
        with torch.no_grad():
            for (module, key), (old, writes, content) in self._before.items():
                vars(module)[key] = old
                if _writes_into(old) != writes:
                    old.detach().copy_(content)


def _writes_into(tensor):
    """How many there were; into those of inference mode, which are not counted, there are none outside of it."""
    return 0 if tensor.is_inference() else tensor._version
