# SPDX-License-Identifier: Apache-2.0
"""Models of the validation's set 6. Each make_KIND() returns what does one unit of work; see blocks.py."""
import torch
from torch import nn
from torch.nn import functional

from blocks import BF16, Block, answering, learning, make_decoder
from gpu import GPU, build, random_rows, random_tensor, size

FP32, FP64 = torch.float32, torch.float64


class TextClassifier(nn.Module):
    def __init__(self, words, tokens, width, heads, layers):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, text):
        x = self.words(text) + self.places.weight
        return self.head(self.norm(self.blocks(x))[:, 0])


def make_bert():
    """Fine-tuning of an encoder: a unit is a step of 32 texts of 128 tokens."""
    words, tokens, width, heads, layers = size((30522, 128, 768, 12, 12), (50, 8, 16, 2, 2))
    model = build(lambda: TextClassifier(words, tokens, width, heads, layers), BF16)
    text, label = random_rows(words, size(32, 2), tokens), random_rows(2, size(32, 2))
    return learning(model.parameters(), lambda: functional.cross_entropy(model(text).float(), label))


class VisionTransformer(nn.Module):
    def __init__(self, pixels, patch, width, heads, layers):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        self.places = nn.Parameter(torch.randn(1, (pixels // patch) ** 2, width))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(x)).mean(1))


def make_vit():
    """Images to classes: a unit is 16 images; a request is some units, so that its batch varies and a unit does not."""
    pixels, patch, width, heads, layers = size((224, 16, 768, 12, 12), (16, 8, 16, 2, 2))
    model = build(lambda: VisionTransformer(pixels, patch, width, heads, layers), BF16)
    images = random_tensor(size(16, 2), 3, pixels, pixels)
    return answering(lambda: model(images))


def make_gpt():
    """Decoding with a cache of 1024 tokens, 8 requests at a time, 4 GB of weights."""
    return make_decoder(*size((10, 4096, 32, 32, 8, 1024, 32000), (2, 16, 4, 4, 2, 8, 50)))


def make_graph():
    """A graph network learns: messages are gathered along the edges and added up at the nodes."""
    nodes, edges, width = size((200_000, 1_000_000, 128), (20, 50, 8))
    x = random_tensor(nodes, width, dtype=FP32)
    source, target = random_rows(nodes, edges), random_rows(nodes, edges)
    weight = random_tensor(edges, 1, dtype=FP32) * 0.3
    layers = build(lambda: nn.ModuleList([nn.Linear(width, width) for _ in range(2)]))

    def loss():
        h = x
        for layer in layers:
            messages = layer(h).index_select(0, source) * weight
            h = torch.zeros_like(x).index_add(0, target, messages).relu()
        return h.square().mean()

    return learning(layers.parameters(), loss)


def make_stencil():
    """A diffusion with a reaction in FP64, seven points; a unit is one sweep."""
    n = size(320, 8)
    field = torch.rand(n, n, n, device=GPU, dtype=FP64)
    middle = field[1:-1, 1:-1, 1:-1]
    around = [field[2:, 1:-1, 1:-1], field[:-2, 1:-1, 1:-1], field[1:-1, 2:, 1:-1], field[1:-1, :-2, 1:-1],
              field[1:-1, 1:-1, 2:], field[1:-1, 1:-1, :-2]]
    out, rate = torch.empty_like(middle.contiguous()), torch.empty_like(middle.contiguous())

    def sweep():
        torch.mul(middle, -6.0, out=out)
        for shifted in around:
            out.add_(shifted)
        torch.mul(middle, middle, out=rate)
        rate.neg_().add_(middle).mul_(middle)
        out.mul_(0.1).add_(rate, alpha=0.05).add_(middle)

    return sweep


def make_boost():
    """One level of gradient boosting: histograms of all features and nodes, the best splits, rows in order of score."""
    rows, features, bins, nodes = size((1 << 21, 8, 256, 32), (64, 2, 8, 4))
    node, values = random_rows(nodes, rows, 1), random_rows(bins, rows, features)
    columns = torch.arange(features, device=GPU)
    places = ((node * features + columns) * bins + values).flatten()
    gradient = random_tensor(rows, dtype=FP32)
    spread = gradient.repeat_interleave(features)

    def level():
        histogram = torch.zeros(nodes * features * bins, device=GPU).scatter_add_(0, places, spread)
        left = histogram.view(nodes, features, bins).cumsum(2)
        gain = left.square() + (left[:, :, -1:] - left).square()
        best = gain.view(nodes, -1).argmax(1)
        side = values.gather(1, (best // bins)[node]) > (best % bins)[node]
        return torch.sort(gradient + side.squeeze(1))

    return answering(level)


def make_video():
    """Clips of 16 frames through convolutions in three dimensions, learning."""
    frames, pixels, width = size((16, 112, 64), (4, 16, 8))

    def layer(before, after, kernel, stride):
        return [nn.Conv3d(before, after, kernel, stride=stride, padding=tuple(k // 2 for k in kernel), bias=False),
                nn.BatchNorm3d(after), nn.ReLU(inplace=True)]

    model = build(lambda: nn.Sequential(
        *layer(3, width, (3, 7, 7), (1, 2, 2)), *layer(width, width, (3, 3, 3), 1), *layer(width, width, (3, 3, 3), 1),
        *layer(width, 2 * width, (3, 3, 3), 2), *layer(2 * width, 2 * width, (3, 3, 3), 1),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(2 * width, 400)))
    clips, label = random_tensor(2, 3, frames, pixels, pixels, dtype=FP32), random_rows(400, 2)
    return learning(model.parameters(), lambda: functional.cross_entropy(model(clips), label))


def make_recsys():
    """Clicks from sparse features: embeddings are looked up, crossed, judged, and corrected where they were used."""
    batch, features, each, rows, width = size((16384, 26, 4, 8_000_000, 64), (8, 3, 2, 100, 4))
    table = random_tensor(rows, width, dtype=FP32)
    ids = random_rows(rows, batch * features, each)
    judge = build(lambda: nn.Sequential(nn.Linear(features * features, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                        nn.Linear(256, 1)))
    clicked = torch.rand(batch, 1, device=GPU)
    found = torch.empty(0)

    def loss():
        nonlocal found
        with torch.no_grad():
            found = functional.embedding_bag(ids, table, mode="sum")
        found.requires_grad_()
        vectors = found.view(batch, features, width)
        crossed = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1)
        return functional.binary_cross_entropy_with_logits(judge(crossed * 0.1), clicked)

    learn = learning(judge.parameters(), loss)

    def step():
        learn()
        table.index_add_(0, ids.flatten(), found.grad.repeat_interleave(each, 0), alpha=-1e-7)

    return step


def make_mlp():
    """A small job on a table of numbers, in plain FP32."""
    batch, width = size((8192, 1024), (8, 16))
    model = build(lambda: nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                        nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)))
    rows, label = random_tensor(batch, 64, dtype=FP32), random_rows(10, batch)
    return learning(model.parameters(), lambda: functional.cross_entropy(model(rows), label))
