"""The decoder in PyTorch, written from the formulas: what the engine is compared with.

Every placement is one function that reads like its formula. `b` is a block, `x` the residual stream
[batch, time, d]; A is attention, M the feed-forward layer, N a norm. Derivatives are PyTorch's
automatic ones. Runs in whatever precision the weights have; the tests use double.
"""

import dataclasses
import math

import torch
from torch.nn import functional as F


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings under the engine's names, a small model as the default."""

    placement: str = "pre"
    norm: str = "layernorm"
    norm_epsilon: float = 1e-6
    norm_gain: bool = True
    final_norm: bool = True
    qk_norm: str = "off"
    residual_scale: float = 1.0
    mix_fraction: float = 0.25
    layers: int = 3
    d_model: int = 32
    heads: int = 4
    ffn_width: int = 64
    activation: str = "gelu-tanh"
    attention: str = "softmax"
    causal: bool = True
    bias: bool = True
    positions: str = "learned"
    tie_embeddings: bool = False
    vocab_size: int = 24
    sequence_length: int = 16
    data: str = "arithmetic"
    batch_size: int = 4
    accumulate: int = 1
    steps: int = 20
    optimizer: str = "adamw"
    momentum: float = 0.9
    learning_rate: float = 1e-3
    schedule: str = "constant"
    warmup_steps: int = 0
    learning_rate_floor: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    decay_parameters: str = "all"
    clip_norm: float = 0.0
    init: str = "flax"
    seed: int = 7
    precision: str = "fp32"


# Norms over the last axis; without a gain they only normalise.


def layernorm(x, epsilon, scale=1.0, bias=0.0):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return scale * centred / torch.sqrt(variance + epsilon) + bias


def rmsnorm(x, epsilon, scale=1.0):
    return scale * x / torch.sqrt(x.square().mean(-1, keepdim=True) + epsilon)


def dyt(x, _epsilon, alpha, scale=1.0, bias=0.0):
    return scale * torch.tanh(alpha * x) + bias


NORMS = {"layernorm": layernorm, "rmsnorm": rmsnorm, "dyt": dyt}


def swiglu(x):
    """silu(a) b of [a, b] side by side (Shazeer 2020)."""
    a, b = x.chunk(2, dim=-1)
    return F.silu(a) * b


ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
    "swiglu": swiglu,
}


def product(config, a, b, bias=None):
    """a @ b + bias in the run's precision."""
    if config.precision == "bf16":
        return RoundedProduct.apply(a, b, bias)
    return a @ b if bias is None else a @ b + bias


class RoundedProduct(torch.autograd.Function):
    """a @ b + bias as under PyTorch's autocast to bfloat16: what goes in and what comes out is
    rounded, also on the way back; only the gradients of weights (which have no batch) are not."""

    @staticmethod
    def round(x):
        return x.to(torch.bfloat16).to(x.dtype)

    @staticmethod
    def forward(context, a, b, bias):
        a, b = RoundedProduct.round(a), RoundedProduct.round(b)
        context.save_for_backward(a, b)
        context.has_bias = bias is not None
        return RoundedProduct.round(a @ b + (RoundedProduct.round(bias) if context.has_bias else 0))

    @staticmethod
    def backward(context, gradient):
        a, b = context.saved_tensors
        gradient = RoundedProduct.round(gradient)
        of_a = RoundedProduct.round(gradient @ b.transpose(-1, -2))
        of_bias = gradient.flatten(0, -2).sum(0) if context.has_bias else None
        if b.dim() == 2:
            of_b = a.flatten(0, -2).T @ gradient.flatten(0, -2)
        else:
            of_b = RoundedProduct.round(a.transpose(-1, -2) @ gradient)
        return of_a, of_b, of_bias


class Weights:
    """Tensors by path under a prefix: block 2's `weights["qkv/kernel"]` is "block_2/qkv/kernel"."""

    def __init__(self, tensors, prefix=""):
        self.tensors = tensors
        self.prefix = prefix

    def __getitem__(self, path):
        return self.tensors[self.prefix + path]

    def __contains__(self, path):
        return self.prefix + path in self.tensors

    def under(self, path):
        return Weights(self.tensors, f"{self.prefix}{path}/")

    def named(self, *names):
        """{name: tensor} of those of the names that exist."""
        return {name: self[name] for name in names if name in self}


def linear(config, weights, x):
    """x W + b with W [in, out]."""
    return product(config, x, weights["kernel"], weights.named("bias").get("bias"))


def norm(config, weights, x):
    names = ("scale",) if config.norm == "rmsnorm" else ("scale", "bias")
    if config.norm == "dyt":
        names += ("alpha",)
    return NORMS[config.norm](x, config.norm_epsilon, **weights.named(*names))


def rotate(x):
    """Rotary positions (Su et al. 2021, equation 34) of x [batch, heads, time, width]: as a complex
    number, the pair (2i, 2i + 1) of position t is multiplied by e^(j t / 10000^(2i / width))."""
    time, width = x.shape[-2:]
    rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=x.dtype) / width)
    angles = torch.arange(time, dtype=x.dtype)[:, None] * rates
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles)).flatten(-2)


def sinusoids(time, width, dtype):
    """Positions [time, width] of Vaswani et al. 2017, section 3.5."""
    rates = 10000.0 ** (-torch.arange(0, width, 2, dtype=dtype) / width)
    angles = torch.arange(time, dtype=dtype)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(time, width)


def attend(config, q, k, v, visible):
    """softmax(q k^T / sqrt(width)) v over the visible keys; [batch, heads, time, width] each."""
    scores = product(config, q, k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~visible, -math.inf)
    return product(config, scores.softmax(-1), v)


class Block:
    def __init__(self, config, weights, index, name="block"):
        self.config = config
        self.weights = weights.under(f"{name}_{index}")
        self.index = index

    def norm(self, name, x):
        return norm(self.config, self.weights.under(name), x)

    def linear(self, name, x):
        return linear(self.config, self.weights.under(name), x)

    def branch(self, value):
        return self.config.residual_scale * value

    def split_heads(self, x):
        batch, time, _ = x.shape
        return x.reshape(batch, time, self.config.heads, -1).transpose(1, 2)

    def query_key_norm(self, name, x):
        """The RMS norm of q, k (or v) before their product, over the full width or each head."""
        scale = self.weights.under(name).named("scale")
        if self.config.qk_norm == "rms-full":
            return rmsnorm(x, self.config.norm_epsilon, **scale)
        heads = x.unflatten(-1, (self.config.heads, -1))
        return rmsnorm(heads, self.config.norm_epsilon, **scale).flatten(-2)

    def visible(self, time):
        """[time, time]: whether a position (row) sees another (column)."""
        everything = torch.ones(time, time, dtype=torch.bool)
        return everything.tril() if self.config.causal else everything

    def head_outputs(self, x):
        """softmax(q k^T / sqrt(width)) v for each head: [batch, heads, time, d / heads]."""
        q, k, v = self.linear("qkv", x).chunk(3, dim=-1)
        if self.config.qk_norm != "off":
            q, k = self.query_key_norm("q_norm", q), self.query_key_norm("k_norm", k)
            if self.config.placement in ("hybrid", "hybrid-star"):
                v = self.query_key_norm("v_norm", v)
        q, k, v = (self.split_heads(part) for part in (q, k, v))
        if self.config.positions == "rotary":
            q, k = rotate(q), rotate(k)
        return attend(self.config, q, k, v, self.visible(x.shape[1]))

    def attention_output(self, heads):
        return self.linear("attention_output", heads.transpose(1, 2).flatten(2))

    def attention(self, x):
        if self.config.attention == "uniform":
            visible = self.visible(x.shape[1]).to(x.dtype)
            return visible / visible.sum(-1, keepdim=True) @ self.linear("value", x)
        return self.attention_output(self.head_outputs(x))

    def hidden(self, x):
        return ACTIVATIONS[self.config.activation](self.linear("mlp_in", x))

    def feed_forward(self, x):
        return self.linear("mlp_out", self.hidden(x))


# Placements: x' of a block.


def pre(b, x):
    u = x + b.branch(b.attention(b.norm("attention_norm", x)))
    return u + b.branch(b.feed_forward(b.norm("mlp_norm", u)))


def post(b, x):
    u = b.norm("attention_norm", x + b.branch(b.attention(x)))
    return b.norm("mlp_norm", u + b.branch(b.feed_forward(u)))


def post_single(b, x):
    u = x + b.branch(b.attention(x))
    return b.norm("norm", u + b.branch(b.feed_forward(u)))


def sandwich(b, x):
    branch = b.attention(b.norm("attention_norm", x))
    u = x + b.branch(b.norm("attention_output_norm", branch))
    branch = b.feed_forward(b.norm("mlp_norm", u))
    return u + b.branch(b.norm("mlp_output_norm", branch))


def olmo2(b, x):
    u = x + b.branch(b.norm("attention_norm", b.attention(x)))
    return u + b.branch(b.norm("mlp_norm", b.feed_forward(u)))


def normformer(b, x):
    heads = b.head_outputs(b.norm("attention_norm", x))
    scaled = b.weights["head_scale"][:, None, None] * heads
    u = x + b.branch(b.norm("attention_output_norm", b.attention_output(scaled)))
    hidden = b.hidden(b.norm("mlp_norm", u))
    return u + b.branch(b.linear("mlp_out", b.norm("mlp_hidden_norm", hidden)))


def deepnorm(b, x):
    alpha = (2 * b.config.layers) ** 0.25
    u = b.norm("attention_norm", alpha * x + b.branch(b.attention(x)))
    return b.norm("mlp_norm", alpha * u + b.branch(b.feed_forward(u)))


def admin(b, x):
    u = b.norm("attention_norm", b.weights["attention_omega"] * x + b.branch(b.attention(x)))
    return b.norm("mlp_norm", b.weights["mlp_omega"] * u + b.branch(b.feed_forward(u)))


def rezero(b, x):
    u = x + b.weights["rezero_scale"] * b.branch(b.attention(x))
    return u + b.weights["rezero_scale"] * b.branch(b.feed_forward(u))


def layerscale(b, x):
    branch = b.attention(b.norm("attention_norm", x))
    u = x + b.branch(b.weights["attention_lambda"] * branch)
    branch = b.feed_forward(b.norm("mlp_norm", u))
    return u + b.branch(b.weights["mlp_lambda"] * branch)


def b2t(b, x):
    u = b.norm("attention_norm", x + b.branch(b.attention(x)))
    return b.norm("mlp_norm", x + u + b.branch(b.feed_forward(u)))


def mix(b, x):
    of_post = math.floor(b.config.mix_fraction * b.config.layers)
    return post(b, x) if b.index < of_post else pre(b, x)


def hybrid(b, x):
    n = b.norm("mlp_norm", x + b.branch(b.attention(x)))  # q, k and v are normed in the attention
    return n + b.branch(b.feed_forward(n))


def hybrid_star(b, x):
    return pre(b, x) if b.index == 0 else hybrid(b, x)


def lns(b, x):
    scale = 1 / math.sqrt(b.index + 1)
    u = x + b.branch(b.attention(scale * b.norm("attention_norm", x)))
    return u + b.branch(b.feed_forward(scale * b.norm("mlp_norm", u)))


def none(b, x):
    u = x + b.branch(b.attention(x))
    return u + b.branch(b.feed_forward(u))


PLACEMENTS = {
    "pre": pre,
    "post": post,
    "post-single": post_single,
    "sandwich": sandwich,
    "olmo2": olmo2,
    "normformer": normformer,
    "deepnorm": deepnorm,
    "admin": admin,
    "rezero": rezero,
    "layerscale": layerscale,
    "b2t": b2t,
    "mix": mix,
    "hybrid": hybrid,
    "hybrid-star": hybrid_star,
    "lns": lns,
    "none": none,
}


def residual_dual(config, weights, blocks, x):
    """Two streams: x as in `post`, d the plain sum of all branches; the end joins them."""
    d = x
    for b in blocks:
        f = b.branch(b.attention(x))
        d, x = d + f, b.norm("attention_norm", x + f)
        f = b.branch(b.feed_forward(x))
        d, x = d + f, b.norm("mlp_norm", x + f)
    return x + norm(config, weights.under("dual_norm"), d)


def blocks_in_turn(placement):
    def stack(_config, _weights, blocks, x):
        for b in blocks:
            x = placement(b, x)
        return x

    return stack


# placement -> function of (config, weights, blocks, x)
STACKS = {name: blocks_in_turn(function) for name, function in PLACEMENTS.items()}
STACKS["residual-dual"] = residual_dual


def add_positions(config, weights, name, x):
    if config.positions == "learned":
        return x + weights[name]
    if config.positions == "sinusoidal":
        return x + sinusoids(x.shape[1], config.d_model, x.dtype)
    return x


def embed(config, weights, batch):
    """[batch, time, d] of tokens [batch, time], or of numbers as they are."""
    x = batch["inputs"] if "inputs" in batch else weights["embedding/embedding"][batch["tokens"]]
    return add_positions(config, weights, "position", x)


def head(config, weights, x):
    """The logits [batch, time, vocab] of the stream after the last block."""
    if config.final_norm:
        x = norm(config, weights.under("final_norm"), x)
    if config.tie_embeddings:
        return product(config, x, weights["embedding/embedding"].T)
    return linear(config, weights.under("output"), x)


def decoder_logits(config, tensors, batch, stack=None):
    """`stack` replaces the placement's own, to show that a wrong one is noticed."""
    weights = Weights(tensors)
    blocks = [Block(config, weights, index) for index in range(config.layers)]
    stack = stack or STACKS[config.placement]
    x = stack(config, weights, blocks, embed(config, weights, batch))
    return head(config, weights, x)


IGNORED = -1


def summed_cross_entropy(logits, targets):
    """Sum over all targets that count."""
    return F.cross_entropy(
        logits.flatten(0, -2), targets.flatten(), ignore_index=IGNORED, reduction="sum"
    )
