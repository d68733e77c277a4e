"""Compares blocks of the engine with torch.nn.TransformerEncoderLayer holding the same weights.

    python torch_layer_test.py --engine path/to/normlab-train-csv [--torch .../torch]

`pre` is PyTorch's norm_first=True and `post` its norm_first=False. Both sides compute in fp32:
the output of every block on its own input, and the logits, to 1e-6 of the largest entry; gradients
of the whole model to 1e-5.
"""

import dataclasses
import sys
import tempfile
from pathlib import Path

import checks

ARGUMENTS = checks.parse_arguments(__doc__) if __name__ == "__main__" else None

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import engine
from comparison import ARTICLE, SMALL, away_from_special_values, of_placement

OUTPUT_LIMIT = 1e-6
GRADIENT_LIMIT = 1e-5

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
}

# PyTorch's parameter -> ours, and whether it is stored transposed.
LAYER_NAMES = {
    "self_attn.in_proj_weight": ("qkv/kernel", True),
    "self_attn.in_proj_bias": ("qkv/bias", False),
    "self_attn.out_proj.weight": ("attention_output/kernel", True),
    "self_attn.out_proj.bias": ("attention_output/bias", False),
    "linear1.weight": ("mlp_in/kernel", True),
    "linear1.bias": ("mlp_in/bias", False),
    "linear2.weight": ("mlp_out/kernel", True),
    "linear2.bias": ("mlp_out/bias", False),
    "norm1.weight": ("attention_norm/scale", False),
    "norm1.bias": ("attention_norm/bias", False),
    "norm2.weight": ("mlp_norm/scale", False),
    "norm2.bias": ("mlp_norm/bias", False),
}


class Decoder(nn.Module):
    """The parts of a decoder out of PyTorch's own layers."""

    def __init__(self, config):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.position = nn.Parameter(torch.zeros(1, config.sequence_length, config.d_model))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                config.d_model,
                config.heads,
                config.ffn_width,
                dropout=0.0,
                activation=ACTIVATIONS[config.activation],
                layer_norm_eps=config.norm_epsilon,
                batch_first=True,
                norm_first=config.placement == "pre",
            )
            for _ in range(config.layers)
        )
        self.final_norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        if not config.final_norm:
            self.final_norm = nn.Identity()
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.mask = None
        if config.causal:
            self.mask = nn.Transformer.generate_square_subsequent_mask(config.sequence_length)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position
        for index in range(len(self.layers)):
            x = self.block(index, x)
        return self.head(x)

    def block(self, index, x):
        return self.layers[index](x, src_mask=self.mask, is_causal=self.mask is not None)

    def head(self, x):
        return self.output(self.final_norm(x))


def our_name(name):
    """Our path of a parameter of Decoder, and whether it is stored transposed."""
    if name.startswith("layers."):
        _, index, rest = name.split(".", 2)
        path, transposed = LAYER_NAMES[rest]
        return f"block_{index}/{path}", transposed
    fixed = {
        "embedding.weight": ("embedding/embedding", False),
        "position": ("position", False),
        "final_norm.weight": ("final_norm/scale", False),
        "final_norm.bias": ("final_norm/bias", False),
        "output.weight": ("output/kernel", True),
    }
    return fixed[name]


def relative_error(ours, theirs):
    return abs(ours - theirs).max() / abs(theirs).max()


def compare(name, config, folder):
    drawn = engine.dump(ARGUMENTS.engine, folder, config)
    weights = away_from_special_values(drawn.weights, seed=1)
    file = str(Path(folder) / "weights.safetensors")
    engine.write_weights(file, weights)
    ours = engine.dump(ARGUMENTS.engine, folder, config, init_file=file)

    decoder = Decoder(config).train()  # in training, so that no fused inference path is taken
    parameters = dict(decoder.named_parameters())
    checks.check(
        {our_name(theirs)[0] for theirs in parameters} == ours.weights.keys(),
        f"{name}: the same {len(parameters)} parameters",
    )
    with torch.no_grad():
        for theirs, parameter in parameters.items():
            path, transposed = our_name(theirs)
            value = torch.tensor(weights[path])
            parameter.copy_(value.T if transposed else value)

    # Each block by itself, on what reached it in the engine.
    streams = torch.tensor(ours.blocks)
    with torch.no_grad():
        outputs = [decoder.block(i, streams[i]) for i in range(config.layers)]
        logits = decoder.head(streams[-1])
    errors = [relative_error(ours.blocks[i + 1], y.numpy()) for i, y in enumerate(outputs)]
    errors.append(relative_error(ours.logits, logits.numpy()))
    checks.check(
        max(errors) < OUTPUT_LIMIT,
        f"{name}: outputs of {config.layers} blocks and logits within {max(errors):.1e}",
    )

    batch = {key: torch.tensor(value) for key, value in ours.steps[0][0].items()}
    logits = decoder(batch["tokens"])
    F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten()).backward()
    errors = {}
    for theirs, parameter in parameters.items():
        path, transposed = our_name(theirs)
        gradient = parameter.grad.T if transposed else parameter.grad
        errors[path] = relative_error(ours.gradients[path], gradient.numpy())
    worst = max(errors, key=errors.get)
    checks.check(
        errors[worst] < GRADIENT_LIMIT,
        f"{name}: gradients within {errors[worst]:.1e} ({worst})",
    )
    # The other order of norm and sum, with the same weights, is another function.
    decoder.layers[0].norm_first = not decoder.layers[0].norm_first
    with torch.no_grad():
        other = decoder.block(0, streams[0])
    error = relative_error(ours.blocks[1], other.numpy())
    checks.check(error > 1e-2, f"{name}: the other norm_first differs by {error:.1e}")


def main():
    print(f"torch {torch.__version__}, numpy {np.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for placement in ("pre", "post"):
            compare(placement, of_placement(placement), folder)
            compare(f"{placement}, size of the article", of_placement(placement, ARTICLE), folder)
        for settings in ({"activation": "relu"}, {"activation": "gelu"}, {"causal": False}):
            compare(f"pre, {settings}", dataclasses.replace(SMALL, **settings), folder)
    checks.finish()


if __name__ == "__main__":
    sys.exit(main())
