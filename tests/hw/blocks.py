# SPDX-License-Identifier: Apache-2.0
"""Parts that several models have. All shapes are fixed, so that every unit costs the same; no result is fed back, so that
the numbers stay what they are; learning rates are too small to change them."""
import itertools

import torch
from torch import nn
from torch.nn import functional

from gpu import build, random_tensor

BF16 = torch.bfloat16


class Block(nn.Module):
    """One layer of a transformer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class DecodeLayer(nn.Module):
    """One layer for one new token of each request; the cache of keys and values is always full."""

    def __init__(self, width, heads, kv_heads, batch, cache):
        super().__init__()
        self.heads, self.kv_heads, self.depth = heads, kv_heads, width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * kv_heads * self.depth)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("keys", torch.randn(batch, kv_heads, cache, self.depth))
        self.register_buffer("values", torch.randn(batch, kv_heads, cache, self.depth))

    def forward(self, x, place):
        batch, _, width = x.shape
        h = self.norm1(x)
        # Heads that share keys stand in a row like the queries of several tokens.
        query = self.query(h).view(batch, self.kv_heads, self.heads // self.kv_heads, self.depth)
        key, value = self.kv(h).view(batch, 2, self.kv_heads, self.depth).unbind(1)
        self.keys[:, :, place] = key
        self.values[:, :, place] = value
        mixed = functional.scaled_dot_product_attention(query, self.keys, self.values)
        x = x + self.out(mixed.reshape(batch, 1, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


def make_decoder(layers, width, heads, kv_heads, batch, cache, words):
    """A unit is one token for every request of a batch."""
    stack = [build(lambda: DecodeLayer(width, heads, kv_heads, batch, cache), BF16) for _ in range(layers)]
    head = build(lambda: nn.Linear(width, words, bias=False), BF16)
    tokens = random_tensor(batch, 1, width)
    places = itertools.cycle(range(cache))

    def step():
        x, place = tokens, next(places)
        for layer in stack:
            x = layer(x, place)
        return head(x).argmax(-1)

    return answering(step)


def answering(step):
    """Nothing is kept for a backward pass."""
    def unit():
        with torch.no_grad():
            step()

    return unit


def learning(parameters, loss):
    """Forward, backward, Adam. Written out, because torch.optim imports its compiler at the first step: seconds in which
    a short job would do nothing."""
    weights = list(parameters)
    mean, square = ([torch.zeros_like(w, requires_grad=False) for w in weights] for _ in range(2))

    def unit():
        loss().backward()
        with torch.no_grad():
            slopes = [w.grad for w in weights]
            torch._foreach_mul_(mean, 0.9)
            torch._foreach_add_(mean, slopes, alpha=0.1)
            torch._foreach_mul_(square, 0.99)
            torch._foreach_addcmul_(square, slopes, slopes, value=0.01)
            spread = torch._foreach_sqrt(square)
            torch._foreach_add_(spread, 1e-6)
            torch._foreach_addcdiv_(weights, mean, spread, value=-1e-7)
        for w in weights:
            w.grad = None

    return unit
