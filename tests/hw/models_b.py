# SPDX-License-Identifier: Apache-2.0
"""Models of the validation's set 7. Each make_KIND() returns what does one unit of work; see blocks.py."""
import torch
from torch import nn
from torch.nn import functional

from blocks import BF16, Block, answering, learning, make_decoder
from gpu import GPU, build, random_rows, random_tensor, size

FP32, FP64 = torch.float32, torch.float64


class Residual(nn.Module):
    def __init__(self, before, after, groups):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, before), nn.GroupNorm(groups, after)
        self.conv1, self.conv2 = nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)
        self.skip = nn.Conv2d(before, after, 1)

    def forward(self, x):
        h = self.conv1(functional.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(functional.silu(self.norm2(h)))


class Denoiser(nn.Module):
    """Down twice, attention at the bottom, up twice, with what was there on the way down."""

    def __init__(self, width, groups):
        super().__init__()
        self.first, self.last = nn.Conv2d(4, width, 3, padding=1), nn.Conv2d(width, 4, 3, padding=1)
        self.down1, self.down2 = Residual(width, width, groups), Residual(width, 2 * width, groups)
        self.bottom, self.look = Residual(2 * width, 4 * width, groups), Block(4 * width, 8)
        self.up2, self.up1 = Residual(6 * width, 2 * width, groups), Residual(3 * width, width, groups)

    def forward(self, x):
        one = self.down1(self.first(x))
        two = self.down2(functional.avg_pool2d(one, 2))
        three = self.bottom(functional.avg_pool2d(two, 2))
        seen = self.look(three.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(three.shape)
        two = self.up2(torch.cat([functional.interpolate(seen, scale_factor=2.0), two], 1))
        one = self.up1(torch.cat([functional.interpolate(two, scale_factor=2.0), one], 1))
        return self.last(one)


def make_denoiser():
    """Diffusion: a unit is one denoising of 8 latents."""
    width, groups, batch, pixels = size((192, 32, 8, 64), (16, 4, 1, 8))
    model = build(lambda: Denoiser(width, groups), BF16)
    latents = random_tensor(batch, 4, pixels, pixels)
    return answering(lambda: model(latents))


class NextWord(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)

    def forward(self, text):
        return self.head(self.lstm(self.words(text))[0])


def make_lstm():
    """A recurrent language model learns from 64 texts of 96 words."""
    words, width, batch, length = size((8000, 1024, 64, 96), (20, 8, 2, 4))
    model = build(lambda: NextWord(words, width))
    text, following = random_rows(words, batch, length), random_rows(words, batch * length)
    return learning(model.parameters(), lambda: functional.cross_entropy(model(text).flatten(0, 1), following))


class SpeechEncoder(nn.Module):
    def __init__(self, width, heads, layers):
        super().__init__()
        self.conv1 = nn.Conv1d(80, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])

    def forward(self, sound):
        x = functional.gelu(self.conv2(functional.gelu(self.conv1(sound))))
        return self.blocks(x.transpose(1, 2))


def make_speech():
    """A unit is 4 clips of 15 seconds."""
    width, heads, layers, frames = size((768, 12, 12, 1500), (16, 2, 2, 16))
    model = build(lambda: SpeechEncoder(width, heads, layers), BF16)
    sound = random_tensor(size(4, 1), 80, frames)
    return answering(lambda: model(sound))


class Experts(nn.Module):
    """Every expert takes the tokens that suit it best: as many in every step, so that shapes stay."""

    def __init__(self, width, inner, experts, takes):
        super().__init__()
        self.takes, self.norm, self.gate = takes, nn.LayerNorm(width), nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, inner) * width ** -0.5)
        self.down = nn.Parameter(torch.randn(experts, inner, width) * inner ** -0.5)

    def forward(self, x):
        h = self.norm(x)
        weight, taken = self.gate(h).softmax(-1).t().topk(self.takes, dim=1)
        inner = functional.gelu(torch.bmm(h[taken], self.up))
        out = torch.bmm(inner, self.down) * weight.unsqueeze(-1)
        nothing = torch.zeros(x.shape, device=x.device)
        return x + nothing.index_add(0, taken.flatten(), out.flatten(0, 1).float()).to(x.dtype)


def make_moe():
    """A mixture of experts learns."""
    width, inner, experts, layers, tokens = size((1024, 2048, 8, 3, 8192), (8, 16, 2, 2, 16))
    takes = 2 * tokens // experts
    model = build(lambda: nn.Sequential(*[Experts(width, inner, experts, takes) for _ in range(layers)]), BF16)
    inputs, wanted = random_tensor(tokens, width), random_tensor(tokens, width)
    return learning(model.parameters(), lambda: functional.mse_loss(model(inputs).float(), wanted.float()))


def make_spectral():
    """Turbulence in two dimensions by Fourier transforms in FP64; a unit is the right-hand side of eight flows."""
    batch, n = size((8, 1024), (1, 16))
    vorticity = random_tensor(batch, n, n, dtype=FP64)
    down = torch.fft.fftfreq(n, 1 / n, device=GPU, dtype=FP64).view(n, 1)
    across = torch.fft.rfftfreq(n, 1 / n, device=GPU, dtype=FP64).view(1, n // 2 + 1)
    square = (down ** 2 + across ** 2).clamp(min=1.0)

    def back(spectrum):
        return torch.fft.irfft2(spectrum, s=(n, n))

    def flow():
        spectrum = torch.fft.rfft2(vorticity)
        stream = spectrum / square
        swept = back(1j * down * stream) * back(1j * across * spectrum)
        swept -= back(1j * across * stream) * back(1j * down * spectrum)
        return torch.fft.rfft2(swept) - 1e-3 * square * spectrum

    return answering(flow)


def make_points():
    """A cloud of points: the nearest neighbours of each, and what they say about it."""
    clouds, points, near, width = size((4, 4096, 20, 64), (1, 32, 4, 8))
    places = random_tensor(clouds, points, 3, dtype=FP32)
    features = random_tensor(clouds, points, width, dtype=FP32)
    think = build(lambda: nn.Sequential(nn.Linear(2 * width, 128), nn.ReLU(), nn.Linear(128, width)))
    first = torch.arange(clouds, device=GPU).view(clouds, 1, 1) * points

    def layer():
        neighbours = torch.cdist(places, places).topk(near, dim=2, largest=False).indices
        theirs = features.flatten(0, 1)[(neighbours + first).flatten()].view(clouds, points, near, width)
        own = features.unsqueeze(2).expand_as(theirs)
        return think(torch.cat([own, theirs - own], 3)).amax(2)

    return answering(layer)


class Inverted(nn.Module):
    def __init__(self, width):
        super().__init__()
        wide = 6 * width
        self.body = nn.Sequential(
            nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return x + self.body(x)


def make_mobile():
    """Depthwise convolutions, learning: little arithmetic, much memory."""
    width, depth, batch, pixels = size((32, 5, 32, 56), (4, 2, 2, 8))
    model = build(lambda: nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2, padding=1), *[Inverted(width) for _ in range(depth)],
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)))
    images, label = random_tensor(batch, 3, 2 * pixels, 2 * pixels, dtype=FP32), random_rows(100, batch)
    return learning(model.parameters(), lambda: functional.cross_entropy(model(images), label))


def make_chat():
    """Decoding for two at a time with a cache of 4096 tokens and keys that heads share: mostly waiting for launches."""
    return make_decoder(*size((16, 2048, 16, 4, 2, 4096, 64000), (2, 16, 4, 2, 1, 8, 50)))


def make_join():
    """Two tables of a database: sort one, find the other's keys in it, add up."""
    rows = size(1 << 23, 64)
    left, right = random_rows(1 << 40, rows), random_rows(1 << 40, rows)
    amounts = random_tensor(rows, dtype=FP64)

    def join():
        keys, order = torch.sort(left)
        found = torch.searchsorted(keys, right).clamp(max=rows - 1)
        return amounts[order][found].cumsum(0)

    return answering(join)


def make_render():
    """Rays through a volume of features: sampled, judged by a small network, added up, learning."""
    rays, steps, n, width = size((8192, 64, 128, 16), (4, 4, 4, 4))
    volume = nn.Parameter(random_tensor(1, width, n, n, n, dtype=FP32))
    think = build(lambda: nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)))
    places = torch.rand(1, 1, rays, steps, 3, device=GPU) * 2 - 1
    wanted = torch.rand(rays, 3, device=GPU)

    def loss():
        sampled = functional.grid_sample(volume, places, align_corners=True).view(width, rays * steps).t()
        thought = think(sampled).view(rays, steps, 4)
        density = functional.softplus(thought[..., 3]) * 0.1
        passed = torch.exp(density - density.cumsum(1))
        color = (thought[..., :3].sigmoid() * (passed * (1 - torch.exp(-density))).unsqueeze(-1)).sum(1)
        return functional.mse_loss(color, wanted)

    return learning([volume, *think.parameters()], loss)


def make_kmeans():
    """A round of clustering of half a million rows."""
    rows, width, centers = size((1 << 19, 32, 256), (64, 4, 4))
    x = random_tensor(rows, width, dtype=FP32)
    middle = random_tensor(centers, width, dtype=FP32)
    ones = torch.ones(rows, device=GPU)

    def one_round():
        nearest = torch.cdist(x, middle).argmin(1)
        count = torch.zeros(centers, device=GPU).index_add_(0, nearest, ones)
        return torch.zeros_like(middle).index_add_(0, nearest, x) / count.clamp(min=1.0).unsqueeze(1)

    return answering(one_round)
