"""The article's pre-norm decoder in PyTorch, as a user would write it: what benchmarks compare with."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width, eps=1e-6)
        self.qkv = nn.Linear(width, 3 * width)
        self.attention_output = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width, eps=1e-6)
        self.mlp_in = nn.Linear(width, 4 * width)
        self.mlp_out = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        heads = (
            t.view(batch, length, self.heads, -1).transpose(1, 2)
            for t in self.qkv(self.attention_norm(x)).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.attention_output(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp_out(F.gelu(self.mlp_in(self.mlp_norm(x)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, layers, width, heads, vocab, length):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.position = nn.Parameter(torch.zeros(1, length, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.final_norm = nn.LayerNorm(width, eps=1e-6)
        self.output = nn.Linear(width, vocab, bias=False)

    def forward(self, tokens, targets):
        x = self.embedding(tokens) + self.position
        for block in self.blocks:
            x = block(x)
        logits = self.output(self.final_norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
