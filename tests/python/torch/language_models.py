"""BERT and GPT-2 in a few lines, as Hugging Face's models and the zoo's have them."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        batch, time, width = x.shape

        def apart(y):
            return y.view(batch, time, self.heads, width // self.heads).permute(0, 2, 1, 3)

        q, k, v = apart(self.query(x)), apart(self.key(x)), apart(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(width // self.heads)
        weights = self.dropout(F.softmax(scores, dim=-1))
        return torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous().view(batch, time, width)


class BertLayer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.attention = SelfAttention(width, heads, dropout)
        self.output, self.norm1 = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = self.norm1(self.dropout(self.output(self.attention(x))) + x)
        return self.norm2(self.dropout(self.down(F.gelu(self.up(x)))) + x)


class Bert(nn.Module):
    """With its masked-language-model head, whose decoder is the embedding."""

    def __init__(self, layers=2, width=64, heads=4, words=96, positions=32, dropout=0.1):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.types, self.positions = nn.Embedding(2, width), nn.Embedding(positions, width)
        self.norm, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(dropout)
        self.layers = nn.ModuleList(BertLayer(width, heads, dropout) for _ in range(layers))
        self.transform, self.head_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, ids, types, places):
        x = self.words(ids) + self.types(types) + self.positions(places)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.head_norm(F.gelu(self.transform(x))), self.words.weight, self.bias)


class GptLayer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def attend(self, x):
        batch, time, width = x.shape

        def apart(y):
            return y.view(batch, time, self.heads, width // self.heads).permute(0, 2, 1, 3)

        q, k, v = map(apart, self.attention(x).split(width, dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(width // self.heads)
        future = torch.triu(torch.ones(time, time, dtype=torch.bool), diagonal=1)
        scores = scores.masked_fill(future, float("-inf"))
        weights = self.dropout(F.softmax(scores, dim=-1))
        y = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous().view(batch, time, width)
        return self.dropout(self.output(y))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        inner = self.up(self.norm2(x))
        bent = math.sqrt(2 / math.pi) * (inner + 0.044715 * torch.pow(inner, 3.0))
        inner = 0.5 * inner * (1 + torch.tanh(bent))
        return x + self.dropout(self.down(inner))


class Gpt2(nn.Module):
    def __init__(self, layers=2, width=64, heads=4, words=96, positions=32, dropout=0.1):
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(GptLayer(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        places = torch.arange(ids.shape[1]).unsqueeze(0)
        x = self.dropout(self.words(ids) + self.positions(places))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.words.weight)


def token_loss(logits, labels):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def next_token_loss(logits, labels):
    return token_loss(logits[:, :-1].contiguous(), labels[:, 1:].contiguous())


def bert(batch=8, time=16, words=96, **options):
    """(model, inputs, targets, loss)"""
    ids = torch.randint(0, words, (batch, time))
    places = torch.arange(time).unsqueeze(0)
    model = Bert(words=words, **options)
    return model, (ids, torch.zeros_like(ids), places), ids, token_loss


def gpt2(batch=8, time=16, words=96, **options):
    ids = torch.randint(0, words, (batch, time))
    return Gpt2(words=words, **options), (ids,), ids, next_token_loss


def resnet50(batch=8, size=64, classes=16):
    import torchvision
    model = torchvision.models.resnet50(num_classes=classes)
    labels = torch.randint(0, classes, (batch,))
    return model, (torch.randn(batch, 3, size, size),), labels, F.cross_entropy
