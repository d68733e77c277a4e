"""Steps a second of the same models in PyTorch on this GPU, eager and compiled, fp32 without TF32.

Prints lines "name<TAB>model<TAB>steps/s", as normlab-gpu-check speed does. Each measures the steady
state: warm-up and compilation are left out. Losses and norms stay on the GPU until the end, which
is the best that a script can do.
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

MODELS = {
    "article": dict(layers=12, width=64, heads=4, vocab=64, length=32, batch=24, steps=300),
    "d512x8": dict(layers=8, width=512, heads=8, vocab=512, length=256, batch=8, steps=100),
}


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


def steps_per_second(config, compiled):
    config = dict(config)
    steps, batch = config.pop("steps"), config.pop("batch")
    torch.manual_seed(7)
    model = Decoder(**config).cuda()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.01,
                                  fused=True)
    loss_of = torch.compile(model) if compiled else model
    vocab, length = config["vocab"], config["length"]
    seen = []

    def step():
        start = torch.randint(vocab, (batch, 1))
        tokens = ((start + torch.arange(length)) % vocab).cuda(non_blocking=True)
        loss = loss_of(tokens, (tokens + 1) % vocab)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        seen.append((loss.detach(), torch.nn.utils.get_total_norm([p.grad for p in parameters])))
        optimizer.step()

    for _ in range(20):
        step()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return steps / (time.perf_counter() - started)


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for compiled in (False, True):
        title = "torch.compile" if compiled else "PyTorch eager"
        for name, config in MODELS.items():
            try:
                rate = f"{steps_per_second(config, compiled):.1f}"
            except Exception as error:  # the other rows are worth having
                rate = "failed: " + str(error).splitlines()[0]
            print(f"{title}\t{name}\t{rate}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
