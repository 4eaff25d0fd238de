#!/usr/bin/env python3
"""Hugging Face models with too little GPU memory: accelerate's own device map against ours.

    PYTHONPATH=build/python bench/device_map.py
    PYTHONPATH=build/python bench/device_map.py --models bert-large --sizes 1x64 --fraction 0.4

Each model is built from its published configuration with random weights; nothing is downloaded. Its
weights may take `--fraction` of their size on the GPU. accelerate.dispatch_model then runs forward
passes with the map of infer_auto_device_map, and with that of emplace.torch.device_map, in turns.
Medians are printed, with quartiles, the GPU memory that each really took, and what differs between
the outputs. Needs PyTorch 2, transformers, accelerate and a GPU.
"""
import argparse
import copy
import gc
import statistics
import sys
import time
import traceback


def bert_large(transformers):
    config = transformers.BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                                     intermediate_size=4096)
    return transformers.BertModel(config), "text"


def gpt2(transformers, width, depth, heads):
    config = transformers.GPT2Config(n_embd=width, n_layer=depth, n_head=heads, use_cache=False)
    return transformers.GPT2LMHeadModel(config), "causal"


def t5_base(transformers):
    config = transformers.T5Config(d_model=768, d_kv=64, d_ff=3072, num_layers=12,
                                   num_decoder_layers=12, num_heads=12, use_cache=False)
    return transformers.T5ForConditionalGeneration(config), "translation"


def vit_large(transformers):
    config = transformers.ViTConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16,
                                    intermediate_size=4096)
    return transformers.ViTModel(config), "image"


MODELS = {
    "bert-large": bert_large,
    "gpt2-medium": lambda library: gpt2(library, 1024, 24, 16),
    "gpt2-large": lambda library: gpt2(library, 1280, 36, 20),
    "t5-base": t5_base,
    "vit-large": vit_large,
}


def input_variants(torch, kind, batch, length):
    """What the model may be called with, the plainest first: code that makes masks may look at
    values, which a whole mask avoids."""
    tokens = torch.randint(0, 1000, (batch, length))
    if kind == "image":
        return [{"pixel_values": torch.randn(batch, 3, 224, 224)}]
    if kind == "translation":
        plain = {"input_ids": tokens, "decoder_input_ids": tokens}
        return [plain, {**plain, "attention_mask": torch.zeros(batch, 1, 1, length)}]
    plain = {"input_ids": tokens}
    if kind == "causal":
        mask = torch.full((length, length), -1e9).triu(1).expand(batch, 1, length, length)
        return [plain, {**plain, "attention_mask": mask.contiguous()}]
    return [plain, {**plain, "attention_mask": torch.zeros(batch, 1, 1, length)}]


def captured(emplace, model, variants):
    """The capture, and the inputs that it is of."""
    failure = None
    for inputs in variants:
        try:
            return emplace.torch.capture(model, inputs, portable=True), inputs
        except emplace.Error as error:
            failure = failure or error
    raise failure


def first_tensor(torch, value):
    if isinstance(value, torch.Tensor):
        return value
    values = value.values() if hasattr(value, "values") else value
    return next(found for item in values if (found := first_tensor(torch, item)) is not None)


class Side:
    """A dispatched copy of the model, and what it took."""

    def __init__(self, torch, accelerate, model, device_map, main_device, gpu):
        self.torch, self.gpu, self.map = torch, gpu, dict(device_map)
        self.seconds, self.peak, self.output = [], 0, None
        torch.cuda.synchronize(gpu)
        before = torch.cuda.memory_allocated(gpu)
        # Hooks also where all is on one device: the inputs are on the CPU.
        options = {"force_hooks": True}
        if main_device is not None:
            options["main_device"] = main_device
        self.model = accelerate.dispatch_model(copy.deepcopy(model), device_map=dict(device_map),
                                               **options)
        self.resident = torch.cuda.memory_allocated(gpu) - before

    def run(self, inputs, counted):
        torch, gpu = self.torch, self.gpu
        torch.cuda.synchronize(gpu)
        before = torch.cuda.memory_allocated(gpu)
        torch.cuda.reset_peak_memory_stats(gpu)
        begin = time.perf_counter()
        with torch.no_grad():
            output = self.model(**inputs)
        torch.cuda.synchronize(gpu)
        if counted:
            self.seconds.append(time.perf_counter() - begin)
        self.peak = self.resident + torch.cuda.max_memory_allocated(gpu) - before
        self.output = first_tensor(torch, output).float().cpu()

    @property
    def median(self):
        return statistics.median(self.seconds) * 1e3

    @property
    def spread(self):
        low, _, high = statistics.quantiles(self.seconds, n=4)
        return f"{low * 1e3:.1f}-{high * 1e3:.1f}"


def compare(name, batch, length, options, libraries):
    torch, transformers, accelerate, emplace = libraries
    torch.manual_seed(1)
    model, kind = MODELS[name](transformers)
    model.eval()
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    limit = int(size * options.fraction)
    max_memory = {options.gpu: limit, "cpu": 2**40}
    began = time.perf_counter()
    theirs = accelerate.infer_auto_device_map(
        model, max_memory=max_memory,
        no_split_module_classes=list(getattr(model, "_no_split_modules", None) or ()))
    capture, inputs = captured(emplace, model, input_variants(torch, kind, batch, length))
    devices = [f"cuda:{options.gpu}", "cpu"]
    profile = emplace.torch.profile(capture, devices=devices, steps=5, warm_up=2)
    ours = emplace.torch.device_map(capture, max_memory=max_memory, profile=profile,
                                    seconds=options.search)
    took = time.perf_counter() - began
    where = set(ours.values())
    how = (f"sends {ours.sent_bytes / 2**20:.0f} MiB" if ours.answer is None else
           "computes on both" if len(where) > 1 else
           "computes on the CPU" if where == {"cpu"} else "computes on the GPU")
    if options.maps:
        print(f"# {name} theirs: {dict(theirs)}\n# {name} ours ({ours.main_device}): {dict(ours)}")
    del capture, profile
    sides = [Side(torch, accelerate, model, theirs, None, options.gpu),
             Side(torch, accelerate, model, ours, ours.main_device, options.gpu)]
    del model
    for run in range(options.warm_up + options.runs):
        for side in sides if run % 2 else reversed(sides):
            side.run(inputs, run >= options.warm_up)
    auto, own = sides
    error = float((auto.output - own.output).abs().max() / auto.output.abs().max())
    print(f"{name:<12} {f'{batch}x{length}':<8} {size / 2**20:>7.0f} {limit / 2**20:>6.0f} "
          f"{auto.median:>9.1f} {auto.spread:>13} {own.median:>9.1f} {own.spread:>13} "
          f"{auto.median / own.median:>6.2f} {auto.peak / 2**20:>6.0f} {own.peak / 2**20:>6.0f} "
          f"{ours.seconds * 1e3:>9.1f} {error:>8.0e}  {how}; map in {took:.0f} s", flush=True)
    if error > 1e-2:
        raise RuntimeError(f"outputs differ by {error:.1e} of the largest")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="bert-large,gpt2-medium,vit-large,t5-base",
                        help="of " + ", ".join(MODELS) + " (default: %(default)s)")
    parser.add_argument("--sizes", default="1x128,16x128",
                        help="BATCHxTOKENS, several with commas; of images only the batch counts "
                             "(default: %(default)s)")
    parser.add_argument("--fraction", type=float, default=0.7,
                        help="of the weights that the GPU has room for (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=9, help="forward passes that are timed")
    parser.add_argument("--warm-up", type=int, default=2, help="forward passes before")
    parser.add_argument("--search", type=float, default=2, help="seconds of a search")
    parser.add_argument("--gpu", type=int, default=0, help="its number")
    parser.add_argument("--maps", action="store_true", help="print the maps")
    options = parser.parse_args()
    unknown = [name for name in options.models.split(",") if name not in MODELS]
    if unknown:
        parser.error(f"--models: '{unknown[0]}' is not one of " + ", ".join(MODELS))
    try:
        sizes = [tuple(map(int, size.split("x"))) for size in options.sizes.split(",")]
        assert all(len(size) == 2 and min(size) > 0 for size in sizes)
    except (ValueError, AssertionError):
        parser.error(f"--sizes: '{options.sizes}' is not like 1x128,16x128")
    try:
        import accelerate
        import torch
        import transformers

        import emplace
        import emplace.torch
    except ImportError as error:
        sys.exit(f"device_map.py: {error}; needs torch 2, transformers, accelerate and emplace "
                 "(PYTHONPATH=build/python)")
    if torch.cuda.device_count() <= options.gpu:
        sys.exit(f"device_map.py: needs GPU {options.gpu}; PyTorch sees {torch.cuda.device_count()}")
    print(f"# {torch.cuda.get_device_name(options.gpu)}, {torch.get_num_threads()} threads, torch "
          f"{torch.__version__}, transformers {transformers.__version__}, accelerate "
          f"{accelerate.__version__}, emplace {emplace.__version__}")
    print("# forward passes in float32; times in ms, sizes in MiB; auto: infer_auto_device_map")
    print(f"{'model':<12} {'size':<8} {'weights':>7} {'limit':>6} {'auto':>9} {'quartiles':>13} "
          f"{'ours':>9} {'quartiles':>13} {'ratio':>6} {'peak':>6} {'peak':>6} {'predicted':>9} "
          f"{'error':>8}  ours")
    failed = 0
    for name in options.models.split(","):
        for batch, length in sizes:
            try:
                compare(name, batch, length, options, (torch, transformers, accelerate, emplace))
            except Exception as error:
                failed += 1
                print(f"{name:<12} {f'{batch}x{length}':<8} failed: {type(error).__name__}: {error}",
                      flush=True)
                traceback.print_exc()
            gc.collect()
            torch.cuda.empty_cache()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
