"""Transformer-XL, Switch and encoder-decoder in PyTorch, from their formulas."""

import dataclasses
import math

import torch

import reference_model as model
from reference_model import Block, Config, Weights, attend, linear, norm, product


@dataclasses.dataclass(frozen=True)
class ArchitectureConfig(Config):
    """The settings of these architectures, under the engine's names."""

    model: str = "decoder"
    decoder_layers: int = 3
    ffn: str = "dense"
    experts: int = 4
    capacity_factor: float = 1.2
    switch_overflow: str = "drop"
    balance_coefficient: float = 0.01
    memory_length: int = 0
    table_length: int = 64


# --- Transformer-XL (Dai et al. 2019) with learned relative positions


class XlBlock(Block):
    """A Pre-Norm block whose keys and values are also made of what it read before."""

    def attention(self, x, memory):
        """x [batch, time, d] and memory [batch, remembered, d], both normed."""
        time, remembered = x.shape[1], memory.shape[1]
        q = self.split_heads(self.linear("query", x))
        key_value = self.linear("key_value", torch.cat([memory, x], dim=1))
        k, v = (self.split_heads(t) for t in key_value.chunk(2, dim=-1))
        # How far back key j is from query i; farther than the table counts as its last entry.
        i = torch.arange(time)[:, None]
        j = torch.arange(remembered + time)[None, :] - remembered
        entry = (i - j).clamp(0, self.config.table_length - 1)
        heads = (self.config.heads, -1)
        relative = self.weights["attention/relative_keys"].unflatten(-1, heads)[entry]  # R
        bias = self.weights["attention/relative_bias"][entry]  # S: [time, keys, heads]
        content = self.weights["attention/key_bias"].unflatten(-1, heads)  # v: [heads, width]
        scores = (
            product(self.config, q, k.transpose(-1, -2))
            + torch.einsum("bhiw,ijhw->bhij", q, relative)
            + torch.einsum("hw,bhjw->bhj", content, k)[:, :, None, :]
            + bias.permute(2, 0, 1)
        ) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(i < j, -math.inf)
        return self.attention_output(product(self.config, scores.softmax(-1), v))

    def __call__(self, x, memory):
        normed = [self.norm("attention_norm", t) for t in (x, memory)]
        u = x + self.branch(self.attention(*normed))
        return u + self.branch(self.feed_forward(self.norm("mlp_norm", u)))


class TransformerXl:
    """Remembers from batch to batch what each block was given, so one of these serves one run."""

    def __init__(self):
        self.memories = None

    def __call__(self, config, tensors, batch):
        weights = Weights(tensors)
        x = model.embed(config, weights, batch)
        if self.memories is None:
            self.memories = [x.new_zeros(len(x), 0, config.d_model)] * config.layers
        memories = []
        for index, memory in enumerate(self.memories):
            read = torch.cat([memory, x], dim=1).detach()
            memories.append(read[:, max(0, read.shape[1] - config.memory_length) :])
            x = XlBlock(config, weights, index)(x, memory)
        self.memories = memories
        return model.head(config, weights, x)


# --- Switch (Fedus et al. 2021)


class SwitchBlock(Block):
    """A block in which each token goes to the one of several feed-forward layers that its router
    prefers."""

    balance = 0.0  # E sum f_i P_i of the last forward
    dropped = 0  # tokens for which there was no room

    def feed_forward(self, x):
        rows = x.flatten(0, -2)
        experts = range(self.config.experts)
        router = dataclasses.replace(self.config, precision="fp32")  # whatever the run's is
        probabilities = linear(router, self.weights.under("router"), rows).softmax(-1)
        p, choice = probabilities.max(-1)
        f = torch.stack([(choice == e).to(x.dtype).mean() for e in experts])
        self.balance = len(experts) * (f * probabilities.mean(0)).sum()

        capacity = math.floor(self.config.capacity_factor * len(rows) / len(experts))
        y = rows if self.config.switch_overflow == "pass" else torch.zeros_like(rows)
        self.dropped = len(rows)
        for e in experts:
            taken = torch.nonzero(choice == e).flatten()[:capacity]
            self.dropped -= len(taken)
            expert = Block(self.config, self.weights, e, name="expert")
            y = y.index_put((taken,), expert.feed_forward(rows[taken]))
        return (p[:, None] * y).reshape(x.shape)


class Switch:
    """A decoder of Switch blocks in any placement."""

    def __init__(self):
        self.auxiliary_loss = 0.0
        self.dropped = 0  # tokens of the whole run

    def __call__(self, config, tensors, batch):
        weights = Weights(tensors)
        blocks = [SwitchBlock(config, weights, index) for index in range(config.layers)]
        x = model.embed(config, weights, batch)
        x = model.STACKS[config.placement](config, weights, blocks, x)
        self.auxiliary_loss = config.balance_coefficient * sum(b.balance for b in blocks)
        self.dropped += sum(b.dropped for b in blocks)
        return model.head(config, weights, x)


# --- Encoder-decoder (Vaswani et al. 2017)


class EncoderBlock(Block):
    def __init__(self, config, weights, index, lengths):
        super().__init__(config, weights, index, name="encoder_block")
        self.lengths = lengths

    def visible(self, time):
        """Everything but the padding of the source: [batch, 1, 1, time]."""
        return torch.arange(time) < self.lengths[:, None, None, None]


class DecoderBlock(Block):
    """Reads what the encoder made of the source between attention and feed-forward layer."""

    def __init__(self, config, weights, index, encoded, lengths):
        super().__init__(config, weights, index)
        self.encoded = encoded
        self.lengths = lengths

    def cross_attention(self, x):
        q = self.split_heads(self.linear("cross_query", x))
        key_value = self.linear("cross_key_value", self.encoded)
        k, v = (self.split_heads(t) for t in key_value.chunk(2, dim=-1))
        visible = torch.arange(k.shape[-2]) < self.lengths[:, None, None, None]
        heads = attend(self.config, q, k, v, visible)
        return self.linear("cross_attention_output", heads.transpose(1, 2).flatten(2))


def pre_block(b, x):
    x = x + b.branch(b.attention(b.norm("attention_norm", x)))
    if isinstance(b, DecoderBlock):
        x = x + b.branch(b.cross_attention(b.norm("cross_attention_norm", x)))
    return x + b.branch(b.feed_forward(b.norm("mlp_norm", x)))


def post_block(b, x, alpha=1.0):
    x = b.norm("attention_norm", alpha * x + b.branch(b.attention(x)))
    if isinstance(b, DecoderBlock):
        x = b.norm("cross_attention_norm", alpha * x + b.branch(b.cross_attention(x)))
    return b.norm("mlp_norm", alpha * x + b.branch(b.feed_forward(x)))


def deepnorm_block(b, x):
    n, m = b.config.layers, b.config.decoder_layers
    decoder_alpha = (3 * m) ** 0.25
    encoder_alpha = 0.81 * (n**4 * m) ** (1 / 16)
    return post_block(b, x, decoder_alpha if isinstance(b, DecoderBlock) else encoder_alpha)


ENCODER_DECODER_BLOCKS = {"pre": pre_block, "post": post_block, "deepnorm": deepnorm_block}


def encoder_decoder_logits(config, tensors, batch):
    weights = Weights(tensors)
    block = ENCODER_DECODER_BLOCKS[config.placement]
    encoded = weights["source_embedding/embedding"][batch["source"]]
    encoded = model.add_positions(config, weights, "source_position", encoded)
    for index in range(config.layers):
        encoded = block(EncoderBlock(config, weights, index, batch["source_lengths"]), encoded)
    if config.final_norm:
        encoded = norm(config, weights.under("encoder_final_norm"), encoded)
    x = model.embed(config, weights, batch)
    for index in range(config.decoder_layers):
        b = DecoderBlock(config, weights, index, encoded, batch["source_lengths"])
        x = block(b, x)
    return model.head(config, weights, x)
