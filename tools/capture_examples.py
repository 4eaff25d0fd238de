"""Training steps of well-known kinds of networks, for capture_torch.py, in plain PyTorch and without
weights. A function of the batch size gives a module whose forward is the loss, and the inputs of
one step."""
import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, labels):
        return F.cross_entropy(self.net(x), labels)


class LanguageModel(nn.Module):
    """`net` gives logits for each token of its input."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, tokens, labels):
        logits = self.net(tokens)
        return F.cross_entropy(logits.flatten(0, -2), labels.flatten())


def image_task(net, batch, size=224, classes=1000):
    return Classifier(net), (torch.randn(batch, 3, size, size),
                             torch.randint(0, classes, (batch,)))


def text_task(net, batch, length, words):
    return LanguageModel(net), (torch.randint(0, words, (batch, length)),
                                torch.randint(0, words, (batch, length)))


def conv_bn(inputs, outputs, kernel, stride=1, groups=1, act=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, act()) if act else nn.Sequential(*layers)


def alexnet(batch):
    pool = lambda: nn.MaxPool2d(3, 2)
    net = nn.Sequential(
        nn.Conv2d(3, 64, 11, 4, 2), nn.ReLU(), pool(),
        nn.Conv2d(64, 192, 5, 1, 2), nn.ReLU(), pool(),
        nn.Conv2d(192, 384, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(384, 256, 3, 1, 1), nn.ReLU(),
        nn.Conv2d(256, 256, 3, 1, 1), nn.ReLU(), pool(),
        nn.AdaptiveAvgPool2d(6), nn.Flatten(),
        nn.Dropout(), nn.Linear(9216, 4096), nn.ReLU(),
        nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1000))
    return image_task(net, batch)


class DenseLayer(nn.Module):
    def __init__(self, inputs, growth):
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, 4 * growth, 1, bias=False),
            nn.BatchNorm2d(4 * growth), nn.ReLU(),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False))

    def forward(self, x):
        return torch.cat([x, self.body(x)], 1)


def densenet(batch):
    layers = [conv_bn(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)]
    width = 64
    for stage, depth in enumerate((6, 12, 24, 16)):
        for _ in range(depth):
            layers.append(DenseLayer(width, 32))
            width += 32
        if stage < 3:
            layers += [nn.BatchNorm2d(width), nn.ReLU(),
                       nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2)]
            width //= 2
    layers += [nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
               nn.Linear(width, 1000)]
    return image_task(nn.Sequential(*layers), batch)


class SqueezeExcite(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.reduce = nn.Conv2d(width, inner, 1)
        self.expand = nn.Conv2d(inner, width, 1)

    def forward(self, x):
        scale = self.expand(F.silu(self.reduce(F.adaptive_avg_pool2d(x, 1))))
        return x * torch.sigmoid(scale)


class InvertedResidual(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride, expand, act, excite):
        super().__init__()
        inner = inputs * expand
        layers = [conv_bn(inputs, inner, 1, act=act)] if expand != 1 else []
        layers.append(conv_bn(inner, inner, kernel, stride, groups=inner, act=act))
        if excite:
            layers.append(SqueezeExcite(inner, max(1, inputs // 4)))
        layers.append(conv_bn(inner, outputs, 1, act=None))
        self.body = nn.Sequential(*layers)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


def inverted_net(batch, stages, act, excite):
    # A stage: expansion, width, blocks, stride, kernel.
    layers, width = [conv_bn(3, 32, 3, 2, act=act)], 32
    for expand, outputs, blocks, stride, kernel in stages:
        for i in range(blocks):
            layers.append(InvertedResidual(width, outputs, kernel, stride if i == 0 else 1, expand,
                                           act, excite))
            width = outputs
    layers += [conv_bn(width, 1280, 1, act=act), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
               nn.Dropout(0.2), nn.Linear(1280, 1000)]
    return image_task(nn.Sequential(*layers), batch)


def mobilenet_v2(batch):
    stages = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3),
              (6, 96, 3, 1, 3), (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)]
    return inverted_net(batch, stages, nn.ReLU6, False)


def efficientnet(batch):
    stages = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3),
              (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]
    return inverted_net(batch, stages, nn.SiLU, True)


class ConvNextBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-2))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(F.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


def convnext(batch):
    layers, width = [nn.Conv2d(3, 96, 4, 4), nn.GroupNorm(1, 96)], 96
    for stage, depth in enumerate((3, 3, 9, 3)):
        layers += [ConvNextBlock(width) for _ in range(depth)]
        if stage < 3:
            layers += [nn.GroupNorm(1, width), nn.Conv2d(width, 2 * width, 2, 2)]
            width *= 2
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(width), nn.Linear(width, 1000)]
    return image_task(nn.Sequential(*layers), batch)


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(conv_bn(inputs, outputs, 3), conv_bn(outputs, outputs, 3))


class UNet(nn.Module):
    def __init__(self, classes=21):
        super().__init__()
        widths = (64, 128, 256, 512, 1024)
        self.down = nn.ModuleList(DoubleConv(i, o) for i, o in zip((3,) + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, i // 2, 2, 2) for i in widths[:0:-1])
        self.merge = nn.ModuleList(DoubleConv(i, i // 2) for i in widths[:0:-1])
        self.head = nn.Conv2d(64, classes, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, skips[-2::-1]):
            x = merge(torch.cat([skip, up(x)], 1))
        return self.head(x)


def unet(batch, size=256, classes=21):
    return Classifier(UNet(classes)), (torch.randn(batch, 3, size, size),
                                       torch.randint(0, classes, (batch, size, size)))


class Attention(nn.Module):
    """fused: through scaled_dot_product_attention; else product, softmax, product."""

    def __init__(self, width, heads, fused, causal=False, bias=True, rotary=False, buckets=0):
        super().__init__()
        self.heads, self.fused, self.causal, self.rotary = heads, fused, causal, rotary
        self.q = nn.Linear(width, width, bias=bias)
        self.kv = nn.Linear(width, 2 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.position = nn.Embedding(buckets, heads) if buckets else None

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def rotate(self, x):
        half = x.shape[-1] // 2
        rate = torch.arange(half, device=x.device, dtype=x.dtype) / half
        angle = torch.outer(torch.arange(x.shape[2], device=x.device, dtype=x.dtype),
                            torch.exp(rate * -9.21))
        cos, sin = torch.cos(angle), torch.sin(angle)
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

    def scores(self, q, k):
        scores = q @ k.transpose(-2, -1) / q.shape[-1]**0.5
        if self.position is not None:
            rows = torch.arange(q.shape[2], device=q.device)[:, None]
            columns = torch.arange(k.shape[2], device=q.device)[None, :]
            far = self.position.num_embeddings - 1
            scores = scores + self.position((rows - columns).abs().clamp(max=far)).permute(2, 0, 1)
        if self.causal:
            mask = torch.ones(q.shape[2], k.shape[2], device=q.device, dtype=torch.bool).tril()
            scores = scores.masked_fill(~mask, -1e9)
        return scores

    def forward(self, x, memory=None):
        memory = x if memory is None else memory
        k, v = self.kv(memory).chunk(2, -1)
        q, k, v = self.split(self.q(x)), self.split(k), self.split(v)
        if self.rotary:
            q, k = self.rotate(q), self.rotate(k)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            y = torch.softmax(self.scores(q, k), -1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class GatedLinear(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    """Pre-norm: x + part(norm(x)) for each part; an Attention marked as cross sees the memory."""

    def __init__(self, norm, width, parts, cross=None, dropout=0.0):
        super().__init__()
        self.norms = nn.ModuleList(norm(width) for _ in parts)
        self.parts = nn.ModuleList(parts)
        self.cross = cross
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory=None):
        for i, (norm, part) in enumerate(zip(self.norms, self.parts)):
            y = part(norm(x), memory) if i == self.cross else part(norm(x))
            x = x + self.dropout(y)
        return x


def mlp(width, inner, act):
    return nn.Sequential(nn.Linear(width, inner), act(), nn.Linear(inner, width))


class VisionTransformer(nn.Module):
    def __init__(self, width=384, depth=12, heads=6):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.start = nn.Parameter(torch.zeros(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.blocks = nn.Sequential(*(
            Block(nn.LayerNorm, width, [Attention(width, heads, True),
                                        mlp(width, 4 * width, nn.GELU)]) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.start.expand(x.shape[0], -1, -1), x], 1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


def vit_small(batch):
    return image_task(VisionTransformer(), batch)


class Llama(nn.Module):
    def __init__(self, words, width=1024, depth=8, heads=16, inner=2816):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(
            Block(RmsNorm, width, [Attention(width, heads, True, True, False, rotary=True),
                                   GatedLinear(width, inner)]) for _ in range(depth)))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.embed(tokens))))


def llama_small(batch, words=32000):
    return text_task(Llama(words), batch, 512, words)


class T5(nn.Module):
    def __init__(self, words, width=512, depth=6, heads=8, inner=2048):
        super().__init__()
        attention = lambda causal, buckets=0: Attention(width, heads, False, causal, False,
                                                        buckets=buckets)
        self.embed = nn.Embedding(words, width)
        self.encoder = nn.ModuleList(
            Block(RmsNorm, width, [attention(False, 32), mlp(width, inner, nn.ReLU)], dropout=0.1)
            for _ in range(depth))
        self.decoder = nn.ModuleList(
            Block(RmsNorm, width, [attention(True, 32), attention(False),
                                   mlp(width, inner, nn.ReLU)], cross=1, dropout=0.1)
            for _ in range(depth))
        self.norms = nn.ModuleList((RmsNorm(width), RmsNorm(width)))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = y = self.embed(tokens)
        for block in self.encoder:
            x = block(x)
        memory = self.norms[0](x)
        for block in self.decoder:
            y = block(y, memory)
        return self.head(self.norms[1](y))


def t5_small(batch, words=32128):
    return text_task(T5(words), batch, 256, words)


class Dlrm(nn.Module):
    def __init__(self, tables=26, rows=100000, width=64, dense=13):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum")
                                    for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(dense, 512), nn.ReLU(), nn.Linear(512, 256),
                                    nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        pairs = tables * (tables + 1) // 2
        self.top = nn.Sequential(nn.Linear(pairs + width, 1024), nn.ReLU(), nn.Linear(1024, 512),
                                 nn.ReLU(), nn.Linear(512, 1))
        self.register_buffer("lower", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, dense, sparse, clicks):
        x = self.bottom(dense)
        rows = [x] + [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        rows = torch.stack(rows, 1)
        products = torch.bmm(rows, rows.transpose(1, 2))
        pairs = products[:, self.lower[0], self.lower[1]]
        scores = self.top(torch.cat([x, pairs], 1)).squeeze(1)
        return F.binary_cross_entropy_with_logits(scores, clicks)


def dlrm(batch, bag=8):
    return Dlrm(), (torch.randn(batch, 13), torch.randint(0, 100000, (batch, 26, bag)),
                    torch.randint(0, 2, (batch,)).float())


EXAMPLES = {  # name: (function of the batch size, usual batch size)
    "alexnet": (alexnet, 128),
    "densenet121": (densenet, 32),
    "mobilenet-v2": (mobilenet_v2, 64),
    "vit-small": (vit_small, 64),
    "t5-small": (t5_small, 16),
    "unet": (unet, 8),
    "llama-small": (llama_small, 4),
    "dlrm": (dlrm, 2048),
    "efficientnet-b0": (efficientnet, 64),
    "convnext-tiny": (convnext, 32),
}
