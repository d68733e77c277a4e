"""Compares bf16 runs with PyTorch in double precision that rounds where autocast rounds.

    python bfloat16_test.py --engine path/to/normlab-train-csv [--torch .../torch]

A sum that is near the middle between two bfloat16 numbers falls to one side in double precision and
may fall to the other in fp32, so two correct programs part by single roundings (2^-9 of a number)
from the first step on, and after a few steps every rounding is another. What shows that the same
things are rounded is the first step: its gradient has to be much nearer to the rounding reference
than to the one that rounds nothing. The curve then only has to stay within a few roundings.
"""

import dataclasses
import sys
import tempfile
from pathlib import Path

import checks

ARGUMENTS = checks.parse_arguments(__doc__) if __name__ == "__main__" else None

import numpy as np
import torch

import engine
from comparison import SMALL, as_tensors, away_from_special_values, curve_errors, of_placement
from reference_training import ReferenceRun

ROUNDING = 2.0**-9
CASES = {
    "pre": SMALL,
    "post": of_placement("post"),
    "olmo2, rotary": of_placement("olmo2", positions="rotary"),
    "swiglu, tied, not causal": dataclasses.replace(
        SMALL, activation="swiglu", tie_embeddings=True, causal=False
    ),
    "no bias, relu": dataclasses.replace(SMALL, bias=False, activation="relu"),
}


def distance(ours, theirs):
    """Of two gradients, relative to the norm of the second."""
    a, b = (np.concatenate([g[path].ravel() for path in sorted(theirs)]) for g in (ours, theirs))
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def compare(name, config, folder):
    file = str(Path(folder) / "weights.safetensors")
    drawn = engine.dump(ARGUMENTS.engine, folder, config)
    weights = away_from_special_values(drawn.weights, seed=3)
    engine.write_weights(file, weights)
    start = engine.dump(ARGUMENTS.engine, folder, config, init_file=file)
    steps = as_tensors(start.steps)
    distances = {}
    for precision in ("bf16", "fp32"):
        reference = ReferenceRun(dataclasses.replace(config, precision=precision), weights)
        reference.backward(steps[0])
        distances[precision] = distance(start.gradients, reference.gradients())
    near, far = distances["bf16"], distances["fp32"]
    checks.check(
        near < far / 3,
        f"{name}: gradient within {near:.0e} of what rounds alike, {far:.0e} of what does not",
    )
    ours = engine.train(ARGUMENTS.engine, config, init_file=file)
    loss, norm = curve_errors(ours, ReferenceRun(config, weights).train(steps))
    checks.check(
        len(ours) == config.steps and loss < 4 * ROUNDING and norm < 40 * ROUNDING,
        f"{name}: {len(ours)} steps: loss within {loss:.0e}, norm within {norm:.0e}",
    )


def main():
    print(f"torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for name, config in CASES.items():
            if ARGUMENTS.only in name:
                compare(name, dataclasses.replace(config, precision="bf16"), folder)
    checks.finish()


if __name__ == "__main__":
    sys.exit(main())
