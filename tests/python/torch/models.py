"""Small models of the kinds that people have, each with inputs, targets and a loss."""
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, time, width = x.shape
        size = width // self.heads
        qkv = self.qkv(self.norm1(x)).view(batch, time, 3, self.heads, size)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-1, -2) / size**0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, time, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """With a head that is tied to the embedding."""

    def __init__(self, words=100, width=32, heads=4, depth=2, time=8):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.position = nn.Parameter(torch.randn(1, time, width) * 0.1)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.norm(self.blocks(self.embed(tokens) + self.position)))


class Encoder(nn.Module):
    """torch.nn's own layers, with dropout."""

    def __init__(self, words=100, width=32, heads=4, depth=2):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(width, words)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(16, 16, 2)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


class Gru(nn.Module):
    """With rows that processors do not take as a whole."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(12, 20, 2, bidirectional=True)
        self.head = nn.Linear(40, 10)

    def forward(self, x):
        return self.head(self.gru(x)[0])


class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        if x.sum() > 0:  # this line is looked for
            return self.one(x)
        return self.other(x)


# PyTorch 2 computes these eagerly by kernels that are no operators of the step (oneDNN's recurrent
# networks, the encoder's fast path), or with other kernels for products where memory lies otherwise.
LAST_BITS = set() if torch.__version__.startswith("1.") else {"encoder", "gru", "lstm", "vit"}


def same(name, one, other):
    """Bit for bit; of some models with PyTorch 2, but for the last bits."""
    if one is None or other is None:
        return one is other
    if name in LAST_BITS:
        return torch.allclose(one, other, rtol=1e-4, atol=1e-6)
    return torch.equal(one, other)


def cross_entropy(output, target):
    return F.cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1))


def _torchvision(name, size, **options):
    import torchvision
    model = getattr(torchvision.models, name)(**options)
    return model, torch.randn(2, 3, size, size), torch.randint(0, 10, (2,))


def _vit():
    import torchvision
    model = torchvision.models.VisionTransformer(image_size=32, patch_size=16, num_layers=2,
                                                 num_heads=2, hidden_dim=32, mlp_dim=64,
                                                 dropout=0.1)
    return model, torch.randn(2, 3, 32, 32), torch.randint(0, 10, (2,))


def _text(model):
    return model, torch.randint(0, 100, (2, 8)), torch.randint(0, 100, (2, 8))


MODELS = {
    "resnet18": lambda: _torchvision("resnet18", 64),
    "resnet50": lambda: _torchvision("resnet50", 64),
    "vit": _vit,
    "gpt": lambda: _text(Gpt()),
    "encoder": lambda: _text(Encoder()),
    "efficientnet": lambda: _torchvision("efficientnet_b0", 64),
    "activations": lambda: (
        nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32), nn.Mish(), nn.Linear(32, 10)),
        torch.randn(5, 16), torch.randint(0, 10, (5,))),
    "gru": lambda: (Gru(), torch.randn(5, 3, 12), torch.randint(0, 10, (5, 3))),
    "lstm": lambda: (Lstm(), torch.randn(5, 2, 16), torch.randint(0, 10, (5, 2))),
}


def make(name):
    """(model, input, target), the same ones each time."""
    torch.manual_seed(1)
    return MODELS[name]()


def eager(model, x, y, seed=7):
    """Loss, and gradients by every name of the parameters, leaving the model as it was."""
    buffers = [buffer.clone() for buffer in model.buffers()]
    torch.manual_seed(seed)
    loss = cross_entropy(model(x), y)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    with torch.no_grad():
        for buffer, value in zip(model.buffers(), buffers):
            buffer.copy_(value)
    of = {id(parameter): gradient for parameter, gradient in zip(parameters, gradients)}
    return loss.detach(), {name: of[id(parameter)] for name, parameter in model.named_parameters()}
