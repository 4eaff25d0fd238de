"""What runtimes_test.py has done in processes of their own: runtime_jobs.py JOB ARGUMENTS, in the folder of the files.

Loaders are those of docs/exports.md, run as they stand there. A job ends with an error where numbers differ."""

import contextlib
import copy
import datetime
import json
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs/exports.md"
JOBS = {}
VOCABULARY, HIDDEN, INTERMEDIATE, LAYERS, HEADS = 18, 16, 12, 4, 4


def job(function):
    JOBS[function.__name__] = function
    return function


def run_docs(section, **names):
    """The first Python of a section of docs/exports.md, run with these names; what it leaves behind."""
    text = DOCS.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    code = re.search(r"```py\n(.*?)```", text, re.DOTALL).group(1)
    exec(compile(code, f"docs/exports.md, {section}", "exec"), names)
    return names


def must_be_same(found, wanted, tolerance=1e-4):
    found, wanted = found.detach().cpu().double(), wanted.detach().cpu().double()
    assert found.shape == wanted.shape, f"{tuple(found.shape)} for {tuple(wanted.shape)}"
    worst = (found - wanted).abs().max().item()
    assert wanted.abs().max().item() > 100 * tolerance, "numbers are too small to be compared"
    assert worst < tolerance, f"differs by {worst}"
    print(f"same: {tuple(found.shape)}, within {worst:.1e}")


@contextlib.contextmanager
def or_else_try(what, attempt):
    """Where the block fails: whether the runtime can do without the export, which says whose fault it is."""
    try:
        yield
    except Exception:
        try:
            attempt()
            print(f"{what}: works", flush=True)
        except Exception as error:
            print(f"{what}: {type(error).__name__}: {error}", flush=True)
        raise


def join_ranks():
    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=40))
    return dist


# ---- transformers and accelerate


def load_llama():
    from transformers import LlamaForCausalLM

    return LlamaForCausalLM.from_pretrained("llama").eval()


def whole():
    import torch

    saved = torch.load("whole.pt")
    return saved["ids"], saved["logits"]


def logits_of(output):
    return output if hasattr(output, "shape") else output[0] if isinstance(output, (tuple, list)) else output["logits"]


@job
def gpu():
    import torch

    print("cuda" if torch.cuda.is_available() else "none")


@job
def save_llama():
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(vocab_size=VOCABULARY, hidden_size=HIDDEN, intermediate_size=INTERMEDIATE,
                         num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=2,
                         max_position_embeddings=64, initializer_range=0.2, tie_word_embeddings=False, use_cache=False)
    model = LlamaForCausalLM(config).float().eval()
    model.save_pretrained("llama")
    ids = torch.randint(0, VOCABULARY, (2, 4))
    with torch.no_grad():
        torch.save({"ids": ids, "logits": model(ids).logits}, "whole.pt")


@job
def check_device_map(path):
    from accelerate.utils.modeling import check_device_map as check

    model = load_llama()
    devices = json.load(open(path))
    check(model, devices)
    modules = {name for name, _ in model.named_modules()}
    print("modules that the model does not have:", sorted(set(devices) - modules))
    assert len(set(devices.values())) > 1, devices


@job
def dispatch(path):
    import torch
    from accelerate import dispatch_model

    ids, logits = whole()
    devices = json.load(open(path))
    model = dispatch_model(load_llama(), device_map=devices)
    on_gpu = [name for name, weight in model.named_parameters() if weight.device.type == "cuda"]
    assert bool(on_gpu) == (0 in devices.values()), on_gpu
    with torch.no_grad():
        must_be_same(logits_of(model(ids)), logits)


@job
def load_by_device_map():
    import torch
    from transformers import AutoModelForCausalLM

    ids, logits = whole()
    model = run_docs("device_map", name="llama", AutoModelForCausalLM=AutoModelForCausalLM)["model"].eval()
    assert len(set(map(str, model.hf_device_map.values()))) == 2, model.hf_device_map
    with torch.no_grad():
        must_be_same(logits_of(model(ids)), logits)


@job
def load_by_tp_plan():
    import torch

    torch._C._get_accelerator = lambda *_, **__: torch.device("cpu")  # it may be what PyTorch was built for
    join_ranks()
    ids, logits = whole()

    def by_its_own_plan():
        from transformers import AutoModelForCausalLM
        from transformers.distributed import DistributedConfig

        model = AutoModelForCausalLM.from_pretrained("llama", distributed_config=DistributedConfig(tp_size=2))
        must_be_same(logits_of(model(ids)), logits)

    with torch.no_grad(), or_else_try("transformers' own plan", by_its_own_plan):
        model = run_docs("tp_plan", name="llama")["model"].eval()
        cut = model.model.layers[0].mlp.up_proj.weight
        cut = cut.to_local() if hasattr(cut, "to_local") else cut
        assert cut.shape[0] == INTERMEDIATE // 2, f"nothing was cut: {cut.shape}"
        found = logits_of(model(ids))
        must_be_same(found.full_tensor() if hasattr(found, "full_tensor") else found, logits)


@job
def export_llama():
    import torch

    model = load_llama()
    ids, _ = whole()
    for how in ({"dynamo": True}, {"dynamo": False, "opset_version": 17, "do_constant_folding": False,
                                   "training": torch.onnx.TrainingMode.PRESERVE}):
        try:
            torch.onnx.export(model, (ids,), "exported.onnx", input_names=["input_ids"], **how)
            print(f"exported with {how}")
            return
        except Exception as error:  # the next way may do
            print(f"{how}: {type(error).__name__}: {str(error)[:600]}", flush=True)
    sys.exit("PyTorch cannot export the model")


# ---- a model in plain PyTorch with the zoo's names and shapes


def plain_model():
    import torch
    from torch import nn

    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(1 + 0.1 * torch.randn(HIDDEN))

        def forward(self, x):
            return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * self.weight

    def linear(inputs, outputs):
        made = nn.Linear(inputs, outputs, bias=False)
        nn.init.normal_(made.weight, std=0.3)
        return made

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
                setattr(self, name, linear(HIDDEN, HIDDEN))

        def forward(self, x):
            batch, length, _ = x.shape
            q, k, v = (project(x).view(batch, length, HEADS, HIDDEN // HEADS).transpose(1, 2)
                       for project in (self.q_proj, self.k_proj, self.v_proj))
            later = torch.ones(length, length, dtype=torch.bool).triu(1)
            # DTensor cannot multiply tensors of four dimensions that are cut by heads.
            scores = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1).masked_fill(later, -1e9).softmax(-1)
            mixed = (scores.unsqueeze(4) * v.unsqueeze(2)).sum(3)
            return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, HIDDEN))

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj, self.up_proj = linear(HIDDEN, INTERMEDIATE), linear(HIDDEN, INTERMEDIATE)
            self.down_proj = linear(INTERMEDIATE, HIDDEN)

        def forward(self, x):
            return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.self_attn, self.mlp = Attention(), Mlp()
            self.input_layernorm, self.post_attention_layernorm = Norm(), Norm()

        def forward(self, x):
            x = x + self.self_attn(self.input_layernorm(x))
            return x + self.mlp(self.post_attention_layernorm(x))

    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed_tokens = nn.Embedding(VOCABULARY, HIDDEN)
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
            self.norm = Norm()

        def forward(self, ids):
            x = self.embed_tokens(ids)
            for layer in self.layers:
                x = layer(x)
            return self.norm(x)

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = Body()
            self.lm_head = linear(HIDDEN, VOCABULARY)

        def forward(self, ids):
            return self.lm_head(self.model(ids))

    torch.manual_seed(0)
    return Plain()


@job
def dtensor(path):
    import torch
    from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
    from torch.distributed.tensor.experimental import implicit_replication

    join_ranks()
    model = plain_model()
    ids = torch.randint(0, VOCABULARY, (2, 4))
    with torch.no_grad():
        wanted = model(ids)
        mesh, inputs = run_docs("dtensor")["apply_plan"](model, path, device="cpu")
        cut = [name for name, weight in model.named_parameters()
               if isinstance(weight, DTensor) and weight.to_local().shape != weight.shape]
        assert "model.layers.0.mlp.up_proj.weight" in cut, cut

        def compute(placements):
            must_be_same(model(distribute_tensor(ids, mesh, placements)).full_tensor(), wanted)

        with implicit_replication(), or_else_try("inputs that are not cut", lambda: compute([Replicate()])):  # the mask
            compute(inputs["input_ids"])


@job
def pipeline(how):
    import torch
    from torch.distributed.pipelining import Schedule1F1B
    from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

    def loss_of(logits, targets):
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    dist = join_ranks()
    model = plain_model()
    ids, targets = torch.randint(0, VOCABULARY, (8, 4)), torch.randint(0, VOCABULARY, (8, 4))
    undivided = copy.deepcopy(model)
    wanted = loss_of(undivided(ids), targets)
    wanted.backward()

    ranks = [stage["rank"] for stage in json.load(open("pipeline.json"))["stages"]]
    mine = [number for number, rank in enumerate(ranks) if rank == dist.get_rank()]
    device = torch.device("cpu")
    made = run_docs("torch-pipeline", model=model, example=ids[:2], stage_index=mine[0], device=device, group=None)
    stages = [made["stage"], *(made["pipe"].build_stage(number, device, None) for number in mine[1:])]
    if how == "1F1B":
        schedule = Schedule1F1B(stages[0], n_microbatches=4, loss_fn=loss_of)
    else:
        schedule = _PipelineScheduleRuntime(stages, n_microbatches=4, loss_fn=loss_of)
        schedule._load_csv(how)
    losses = []
    given = (ids,) if 0 in mine else ()
    schedule.step(*given, **({"target": targets, "losses": losses} if len(ranks) - 1 in mine else {}))

    gradients = {name: weight.grad for stage in stages for name, weight in stage.submod.named_parameters()}
    everywhere = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, (gradients, losses))
    found = {name: gradient for part, _ in everywhere for name, gradient in part.items()}
    losses = torch.stack([loss for _, part in everywhere for loss in part])
    assert len(losses) == 4, losses
    must_be_same(losses.mean(), wanted)
    of_whole = {name: weight.grad for name, weight in undivided.named_parameters()}
    assert set(found) == set(of_whole), set(found) ^ set(of_whole)
    assert len(set(everywhere[0][0]) & set(everywhere[1][0])) == 0
    must_be_same(torch.cat([found[name].flatten() for name in of_whole]),
                 torch.cat([gradient.flatten() for gradient in of_whole.values()]))


# ---- JAX


def jax_forward(weights, ids):
    import jax
    import jax.numpy as jnp

    def norm(x, name):
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weights[name + ".weight"]

    def project(x, name):
        return x @ weights[name + ".weight"].T

    def attend(x, name):
        batch, length, _ = x.shape
        q, k, v = (project(x, f"{name}.{part}_proj").reshape(batch, length, HEADS, HIDDEN // HEADS) for part in "qkv")
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        scores = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9), -1)
        return project(jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.shape), f"{name}.o_proj")

    x = weights["model.embed_tokens.weight"][ids]
    for i in range(LAYERS):
        layer = f"model.layers.{i}"
        x = x + attend(norm(x, f"{layer}.input_layernorm"), f"{layer}.self_attn")
        y = norm(x, f"{layer}.post_attention_layernorm")
        gated = jax.nn.silu(project(y, f"{layer}.mlp.gate_proj")) * project(y, f"{layer}.mlp.up_proj")
        x = x + project(gated, f"{layer}.mlp.down_proj")
    return project(norm(x, "model.norm"), "lm_head")


@job
def jax():
    import jax as library
    import numpy

    shapes = {name: entry["shape"] for name, entry in json.load(open("dtensor.json"))["parameters"].items()}
    random = numpy.random.default_rng(0)
    weights = {name: 0.3 * random.standard_normal(shape, dtype="float32") for name, shape in shapes.items()}
    ids = random.integers(0, VOCABULARY, (4, 4))
    wanted = numpy.asarray(library.jit(jax_forward)(weights, ids))

    made = run_docs("jax")
    sharding, mesh = made["sharding"], made["mesh"]
    placed = {name: library.device_put(value, sharding[name]) for name, value in weights.items()}
    for name, array in placed.items():
        whole_size, part = array.size, array.addressable_shards[0].data.size
        parts = 1
        for axes in made["plan"]["specs"][name]:
            for axis in axes or []:
                parts *= mesh.shape[axis]
        assert part * parts == whole_size, f"{name}: {array.shape} in parts of {part}"
    assert not placed["model.layers.0.mlp.up_proj.weight"].sharding.is_fully_replicated
    found = numpy.asarray(library.jit(jax_forward)(placed, library.device_put(ids, sharding["input_ids"])))
    worst = abs(found - wanted).max()
    assert abs(wanted).max() > 0.1 and worst < 1e-4, f"differs by {worst}"
    print(f"same: {found.shape} on {len(library.devices())} devices, within {worst:.1e}")


# ---- ONNX


def onnx_session(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Optimisation may round otherwise in a part than in the whole.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def onnx_inputs(session):
    import numpy

    random = numpy.random.default_rng(0)
    made = {}
    for given in session.get_inputs():
        floats = "float" in given.type
        made[given.name] = (random.standard_normal(given.shape, dtype="float32") if floats
                            else random.integers(0, VOCABULARY, given.shape))
    return made


def must_be_equal(names, found, wanted):
    for name, left, right in zip(names, found, wanted, strict=True):
        assert left.dtype == right.dtype and left.tobytes() == right.tobytes(), f"{name}: {left} for {right}"
    print(f"same, bit for bit: {', '.join(names)}")


@job
def onnx_parts(model, folder):
    undivided = onnx_session(model)
    values = onnx_inputs(undivided)
    manifest = json.load(open(f"{folder}/manifest.json"))
    names = [output["name"] for output in manifest["outputs"]]
    wanted = undivided.run(names, values)
    assert len(manifest["parts"]) > 1
    for part in manifest["parts"]:
        session = onnx_session(f"{folder}/{part['file']}")
        values |= zip(part["outputs"], session.run(part["outputs"], {name: values[name] for name in part["inputs"]}))
    must_be_equal(names, [values[name] for name in names], wanted)


@job
def onnx_same(model, other):
    first, second = onnx_session(model), onnx_session(other)
    values = onnx_inputs(first)
    names = [output.name for output in first.get_outputs()]
    must_be_equal(names, second.run(names, values), first.run(names, values))


if __name__ == "__main__":
    JOBS[sys.argv[1]](*sys.argv[2:])
