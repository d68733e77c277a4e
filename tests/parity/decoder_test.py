"""Compares the engine with PyTorch in double precision: every part of the decoder by itself.

    python decoder_test.py --engine path/to/normlab-train-csv [--torch .../torch]

What is compared is as in placements_test.py; here the placement is `pre` unless a name says
otherwise, and one setting differs from the small model. Two cases have the size of the article's
model.
"""

import dataclasses
import sys
import tempfile

import checks

ARGUMENTS = checks.parse_arguments(__doc__) if __name__ == "__main__" else None

import torch

from comparison import ARTICLE, SMALL, compare, of_placement

CASES = {
    name: dataclasses.replace(SMALL, **settings)
    for name, settings in {
        "dyt": {"norm": "dyt"},
        "dyt, post": {"norm": "dyt", "placement": "post", "final_norm": False},
        "rmsnorm": {"norm": "rmsnorm"},
        "norms without gain": {"norm_gain": False, "qk_norm": "rms-head"},
        "large epsilon": {"norm_epsilon": 0.1},
        "qk_norm rms-head": {"qk_norm": "rms-head"},
        "qk_norm rms-full": {"qk_norm": "rms-full"},
        "residual_scale": {"residual_scale": 0.3},
        "tied embeddings": {"tie_embeddings": True},
        "no final norm": {"final_norm": False},
        "relu": {"activation": "relu"},
        "gelu": {"activation": "gelu"},
        "swiglu": {"activation": "swiglu"},
        "sinusoidal": {"positions": "sinusoidal"},
        "rotary": {"positions": "rotary"},
        "no positions": {"positions": "none"},
        "not causal": {"causal": False},
        "no bias": {"bias": False},
        "uniform attention": {"attention": "uniform", "heads": 1},
        "uniform attention, not causal": {"attention": "uniform", "heads": 1, "causal": False},
        "numbers as input": {"data": "gaussian"},
        # Sizes that fill no vector register and divide no block of a kernel.
        "odd sizes": {
            "d_model": 15, "heads": 3, "ffn_width": 37, "vocab_size": 11, "sequence_length": 7,
            "batch_size": 5,
        },
        "one of everything": {
            "layers": 1, "heads": 1, "sequence_length": 1, "batch_size": 1,
        },
        # Products large enough for the other library.
        "wide": {"layers": 1, "d_model": 544, "ffn_width": 576, "heads": 8, "sequence_length": 40,
                 "batch_size": 14, "steps": 3},
    }.items()
}  # fmt: skip
# What the settings that are alike have to be told apart by: a reference with the other one.
MISTAKES = {
    "dyt": {"norm": "layernorm"},
    "rmsnorm": {"norm_epsilon": 0.1},
    "large epsilon": {"norm_epsilon": 1e-6},
    "residual_scale": {"residual_scale": 1.0},
    "relu": {"activation": "gelu"},
    "gelu": {"activation": "relu"},
    "sinusoidal": {"positions": "none"},
    "rotary": {"positions": "none"},
    "not causal": {"causal": True},
}
for placement in ("pre", "post"):
    CASES[f"{placement}, size of the article"] = of_placement(
        placement, ARTICLE, learning_rate=2e-4
    )


def main():
    print(f"torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for name, config in CASES.items():
            if ARGUMENTS.only not in name:
                continue
            compared = compare(name, config, folder, ARGUMENTS.engine)
            if name in MISTAKES:
                mistaken = dataclasses.replace(config, **MISTAKES[name])
                loss, norm = compared.errors_of(mistaken, steps=3)
                checks.check(
                    max(loss, norm) > 1e-3,
                    f"{name}: {MISTAKES[name]} differs, loss by {loss:.0e}, norm by {norm:.0e}",
                )
    checks.finish()


if __name__ == "__main__":
    sys.exit(main())
