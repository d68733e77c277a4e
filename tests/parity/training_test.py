"""Compares how the engine trains with PyTorch: update rules, schedules, clipping, accumulation.

    python training_test.py --engine path/to/normlab-train-csv [--torch .../torch]

The model is a small Pre-Norm decoder; what is compared is as in placements_test.py, and the
learning rate of every step too.
"""

import dataclasses
import sys
import tempfile

import checks

ARGUMENTS = checks.parse_arguments(__doc__) if __name__ == "__main__" else None

import torch

from comparison import SMALL, compare
from reference_training import ReferenceRun

CASES = {
    name: dataclasses.replace(SMALL, **settings)
    for name, settings in {
        "sgd": {"optimizer": "sgd", "momentum": 0.0, "learning_rate": 0.05},
        "sgd with momentum and decay": {
            "optimizer": "sgd", "momentum": 0.8, "learning_rate": 0.05, "weight_decay": 0.1,
        },
        "no decay": {"weight_decay": 0.0},
        "decay of matrices only": {"weight_decay": 5.0, "decay_parameters": "matrices"},
        "decay of everything": {"weight_decay": 5.0},
        "betas and epsilon": {"beta1": 0.7, "beta2": 0.999, "epsilon": 1e-3},
        "warmup": {"warmup_steps": 8},
        "cosine": {"schedule": "cosine", "learning_rate_floor": 1e-4},
        "cosine after warmup": {"schedule": "cosine", "warmup_steps": 5},
        "linear": {"schedule": "linear"},
        "linear after warmup": {
            "schedule": "linear", "warmup_steps": 6, "learning_rate_floor": 2e-4,
        },
        "noam": {"schedule": "noam", "warmup_steps": 7, "learning_rate": 0.02},
        "clipping": {"clip_norm": 0.1, "optimizer": "sgd", "learning_rate": 0.05},
        "clipping that seldom acts": {"clip_norm": 1.5, "steps": 20},
        "accumulation": {"accumulate": 3},
        "accumulation with ignored targets": {"accumulate": 2, "data": "copy"},
        "ignored targets": {"data": "modular-addition"},
    }.items()
}  # fmt: skip

# What has to make a difference: case -> the settings of a reference that is wrong.
MISTAKES = {
    "sgd with momentum and decay": {"momentum": 0.0},
    "decay of matrices only": {"decay_parameters": "all"},
    "betas and epsilon": {"epsilon": 1e-8},
    "clipping": {"clip_norm": 0.0},
}

def check_rates(name, compared):
    theirs = ReferenceRun(compared.config, compared.weights).train(compared.steps)
    pairs = zip(compared.curve, theirs, strict=True)
    error = max(abs(a[2] - b[2]) for a, b in pairs) / max(b[2] for b in theirs)
    checks.check(
        error < 1e-12,
        f"{name}: rates {theirs[0][2]:.2e} to {theirs[-1][2]:.2e}, within {error:.0e}",
    )


def main():
    print(f"torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for name, config in CASES.items():
            if ARGUMENTS.only not in name:
                continue
            compared = compare(name, config, folder, ARGUMENTS.engine)
            if config.schedule != "constant" or config.warmup_steps > 0:
                check_rates(name, compared)
            if name in MISTAKES:
                mistaken = dataclasses.replace(config, **MISTAKES[name])
                loss, _ = compared.errors_of(mistaken)
                checks.check(loss > 1e-3, f"{name}: {MISTAKES[name]} differs by {loss:.0e}")
    checks.finish()


if __name__ == "__main__":
    sys.exit(main())
