"""What differs between PyTorch 1.13 and 2.x."""
import contextlib
import functools
import inspect
import linecache
import pickle
import random

import numpy
import torch
import torch.fx.graph_module
import torch.utils._pytree as pytree
from torch.fx.experimental.proxy_tensor import make_fx

if hasattr(torch, "func"):
    from torch.func import functionalize
else:
    from functorch import functionalize


def flatten(value):
    """The leaves of nested tuples, lists and dictionaries, and what is needed to build it again."""
    return pytree.tree_flatten(value)


def unflatten(leaves, structure):
    return pytree.tree_unflatten(leaves, structure)


def tree_map(function, value):
    return pytree.tree_map(function, value)


def before_forward(module, hook):
    """Registers hook(module, args), or hook(module, args, kwargs) where PyTorch can."""
    if "with_kwargs" in inspect.signature(module.register_forward_pre_hook).parameters:
        return module.register_forward_pre_hook(hook, with_kwargs=True)
    return module.register_forward_pre_hook(hook)


def tags_of(target):
    """The names of an operator's tags, such as dynamic_output_shape."""
    return {str(tag).rsplit(".", 1)[-1] for tag in getattr(target, "tags", ())}


@functools.lru_cache(maxsize=None)
def loaded():
    """The first trace of PyTorch 2 imports its compiler, which makes tables of torch's functions: they
    must not be of ones that a capture has replaced for a while."""
    make_fx(lambda tensor: tensor + 1)(torch.zeros(1))


@contextlib.contextmanager
def without(library):
    """Operators as if PyTorch did not have it: "cudnn" or "mkldnn". Not by flags(), which set the
    precision of products as well, nor by what disable_global_flags() forbids."""
    enabled, enable = (getattr(torch._C, f"_{verb}_{library}_enabled") for verb in ("get", "set"))
    before = enabled()
    enable(False)
    try:
        yield
    finally:
        enable(before)


@contextlib.contextmanager
def portable_kernels():
    """Operators that every kind of device has: no fused attention of one backend, no oneDNN, no
    cuDNN."""
    with without("mkldnn"), without("cudnn"), _plain_attention():
        yield


@contextlib.contextmanager
def traceable_kernels(model):
    """Operators that can be traced. Recurrent networks of cuDNN read the memory of their weights as a
    whole, and those of oneDNN hand a tensor to their backward pass that tracing does not see."""
    with contextlib.ExitStack() as stack:
        if any(is_recurrent(module) for module in model.modules()):
            stack.enter_context(without("cudnn"))
            stack.enter_context(without("mkldnn"))
        yield


def is_recurrent(module):
    """Also of what was exported, whose recurrent networks are operators."""
    if isinstance(module, torch.fx.GraphModule):
        schemas = [getattr(node.target, "_schema", None) for node in module.graph.nodes]
        names = {schema.name for schema in schemas if schema is not None}
        return bool(names & {"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"})
    return isinstance(module, torch.nn.RNNBase)


def _plain_attention():
    """Attention as products and a softmax."""
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        return sdpa_kernel(SDPBackend.MATH)
    except ImportError:
        pass
    choose = getattr(torch.backends.cuda, "sdp_kernel", None)
    if choose is None:
        return contextlib.nullcontext()
    known = inspect.signature(choose).parameters
    return choose(**{name: name == "enable_math" for name in known if name.startswith("enable_")})


@contextlib.contextmanager
def as_if_compiling():
    """Libraries ask torch.compiler.is_compiling() to leave out looks at values."""
    compiler = getattr(torch, "compiler", None)
    if compiler is None or not hasattr(compiler, "_is_compiling_flag"):
        yield
        return
    before = compiler._is_compiling_flag
    compiler._is_compiling_flag = True
    try:
        yield
    finally:
        compiler._is_compiling_flag = before


@contextlib.contextmanager
def random_state_kept():
    """PyTorch's, Python's and numpy's. Yields a function that says whether numbers of the last two, which
    would be constants of the step, were drawn since its last call."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    pythons, numpys = random.getstate(), numpy.random.get_state(legacy=False)
    seen = pythons, _comparable(numpys)

    def drawn():
        nonlocal seen
        before, seen = seen, (random.getstate(), _comparable(numpy.random.get_state(legacy=False)))
        return before != seen

    try:
        with torch.random.fork_rng(devices):
            yield drawn
    finally:
        random.setstate(pythons)
        numpy.random.set_state(numpys)


def _comparable(state):
    """Arrays are not, as a whole."""
    return pickle.dumps(state)


@contextlib.contextmanager
def sources_dropped():
    """Graph modules leave their generated source in tables of PyTorch's for ever."""
    kept = getattr(getattr(torch.fx.graph_module, "_loader", None), "eval_cache", {})
    before = set(kept)
    try:
        yield
    finally:
        for key in set(kept) - before:
            del kept[key]
            linecache.cache.pop(key, None)


@contextlib.contextmanager
def without_nested_tensors(model):
    """nn.TransformerEncoder leaves out what is padded, and shapes then depend on values."""
    changed = [(module, name) for module in model.modules() if isinstance(module, torch.nn.TransformerEncoder)
               for name in ("enable_nested_tensor", "use_nested_tensor") if getattr(module, name, False)]
    for module, name in changed:
        setattr(module, name, False)
    try:
        yield
    finally:
        for module, name in changed:
            setattr(module, name, True)


@contextlib.contextmanager
def autocast_off():
    """Casts are ops of the step already; the caller's autocast would make others."""
    with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
        yield
