"""Which modules of a model can be on devices of their own, read off its captured forward pass.

Where modules are moved by hooks, a module's arguments are copied to its device when it is called,
and whatever the code between modules computes happens where its operands are. So:

* A module whose own code combines what its children returned with what it was given (a residual
  add) must be whole: it is a *unit*. So is one whose code reads the parameters of its children,
  and every module without children.
* Modules around units are taken apart. Code of theirs that combines the results of several units
  (or parameters of their own, or the model's inputs) keeps these on one device.
* So do tied weights.
* Where parameters cannot be placed by themselves (accelerate places modules), a module whose own
  code reads parameters of its own is a unit, too.

`Units.part_of` says, by unit, loose parameter, or "" (the model's inputs), which of them must stay
together.
"""
import operator

from ._document import is_view, owner_of


class Units:
    def __init__(self, captured, targets=(), loose_parameters=True, apart=True):
        """apart=False: modules differ in where their weights are kept, not where they are computed;
        only who reads parameters counts then."""
        self.capture, self.trace = captured, captured.trace
        self._loose_parameters, self._apart = loose_parameters, apart
        model = captured.model
        self._children = {path: [f"{path}.{name}" if path else name
                                 for name, _ in module.named_children()]
                          for path, module in model.named_modules()}
        self._targets = set(targets)
        self._owners = {}  # states by their placeholders
        for state in self.trace.parameters + self.trace.buffers:
            self._owners[self.trace.state_nodes[state.name]] = state
        self._inputs = dict(zip(self.trace.input_nodes, self.trace.inputs))
        self._forward = [node for node in self.trace.nodes if node.op == "call_function"
                         and node.meta.get("phase", "forward") == "forward"]
        self.names = self._find_units()
        self._parents = {}
        self._origins = {}
        self._join()

    # Units.

    def _module(self, node):
        return node.meta.get("module", "")

    def _find_units(self):
        whole = self._whole()
        units, todo = set(), [""]
        while todo:
            path = todo.pop()
            if path in whole or (path and not self._children.get(path)):
                units.add(path)
            else:
                todo.extend(self._children.get(path, ()))
        return units

    def _whole(self):
        """Modules whose own code mixes results of their children with what is from outside."""
        whole, inside, outside = set(), set(), set()  # of nodes: relative to their own module
        for node in self._forward:
            path = self._module(node)
            if not path or not self._children.get(path):
                continue
            for read in node.all_input_nodes:
                state = self._owners.get(read)
                if state is not None:
                    owners = [owner_of(name) for name in state.names]
                    if any(within(owner, path) and owner != path for owner in owners) or (
                            path in owners and not self._loose_parameters):
                        whole.add(path)
                elif self._module(read) == path and (read in inside or read in outside):
                    if read in inside:
                        inside.add(node)
                    if read in outside:
                        outside.add(node)
                elif read.op == "call_function" and self._module(read) != path and within(
                        self._module(read), path):
                    inside.add(node)
                elif read.op == "placeholder" or not within(self._module(read), path):
                    outside.add(node)
            if self._apart and node in inside and node in outside and (
                    node.target is not operator.getitem):
                whole.add(path)
        return whole

    def unit_of(self, path):
        """The unit that the module is (in), or None where it is taken apart."""
        while True:
            if path in self.names:
                return path
            if not path:
                return None
            path = path.rpartition(".")[0]

    # What must stay together.

    def find(self, name):
        while self._parents.setdefault(name, name) != name:
            name = self._parents[name]
        return name

    def _unite(self, names):
        names = [self.find(name) for name in names if name is not None]
        for name in names[1:]:
            one, other = sorted((self.find(names[0]), self.find(name)))
            self._parents[other] = one

    def key_of_state(self, name):
        """The unit of a parameter or buffer, or its own name where its module is taken apart."""
        unit = self.unit_of(owner_of(name))
        return name if unit is None else unit

    def _join(self):
        for state in self.trace.parameters + self.trace.buffers:
            self._unite([self.key_of_state(name) for name in state.names])
            if not all(map(owner_of, state.names)):  # the model's own stay with its inputs
                self._unite(["", self.key_of_state(state.name)])
        for node in self._forward:
            unit = self.unit_of(self._module(node))
            if unit is not None:
                self._origins[node] = unit
                self._unite([unit] + [self.key_of_state(self._owners[read].name)
                                      for read in node.all_input_nodes if read in self._owners])
                continue
            origins = [self.origin(read) for read in node.all_input_nodes]
            origins = [origin for origin in origins if origin is not None]
            if origins:
                if self._apart:
                    self._unite(origins)
                self._origins[node] = origins[0]

    def origin(self, node):
        """Where a tensor comes from: a unit, a loose parameter, "" for inputs, None for any."""
        if node in self._owners:
            return self.key_of_state(self._owners[node].name)
        if node in self._inputs:
            return None if self._inputs[node] in self._targets else ""
        return self._origins.get(node)

    def part_of(self, name):
        return self.find(name)

    def keys(self):
        """Units with anything in them, and loose parameters and buffers."""
        active = {self.unit_of(self._module(node)) for node in self._forward}
        active |= {self.key_of_state(name) for state in self.trace.parameters + self.trace.buffers
                   for name in state.names}
        return sorted(key for key in active if key)

    def parts_of_ops(self):
        """By op of the document: its part, None where it may be anywhere. Backward ops are with the
        module that they belong to, views with what they show: what is copied is then the view."""
        parts = {}
        for node, name in self.capture.document.op_of.items():
            if node.op == "call_function" and is_view(node.target):
                parts[name] = parts[self.capture.document.op_of[node.args[0]]]
                self._origins.setdefault(node, self.origin(node.args[0]))
                continue
            origin = self.origin(node)
            if node.op == "call_function" and node.meta.get("phase") == "backward":
                origin = self.unit_of(self._module(node))
                if origin is None:
                    found = [self._origins.get(read) for read in node.all_input_nodes]
                    origin = next((item for item in found if item is not None), None)
                self._origins[node] = origin
            parts[name] = None if origin is None else self.part_of(origin)
        for state, update in self.capture.document.update_of.items():
            parts[update] = self.part_of(self.key_of_state(state))
        return parts


def within(path, module):
    return not module or path == module or path.startswith(module + ".")
