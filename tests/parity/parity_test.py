"""Compares the engine with JAX: initial weights and data bit for bit, then the article's curves.

    python parity_test.py --engine path/to/normlab-train-csv

Exit status: 0 equal, 1 different, 77 skipped because JAX is not installed (an error under CI=true).
"""

import argparse
import csv
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77

try:
    import flax
    import jax
    import numpy as np
    import optax  # noqa: F401  (article_jax needs it)
except ImportError as error:
    print(f"JAX is not here ({error}); install it with:")
    print("  python3 -m venv .venv-test")
    print("  .venv-test/bin/pip install -r tests/parity/requirements.txt")
    sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)

import article_jax
from article_jax import RUNS, Config

# Run, steps compared, largest relative error of loss and of gradient norm. Pre-Norm agrees to the
# end. Post-Norm amplifies rounding: with warmup two correct programs stay together for a hundred
# steps, without it for about ten.
LIMITS = {
    "Pre-Norm · no warmup": (180, 1e-3, 1e-3),
    "Post-Norm · no warmup": (8, 1e-2, 1e-2),
    "Post-Norm · 120-step warmup": (100, 2e-3, 5e-3),
}

failures = []


def check(condition, message):
    print(("ok      " if condition else "FAILED  ") + message)
    if not condition:
        failures.append(message)


def engine_options(run, config):
    warmup = max(1, 2 * config.steps // 3) if run.warmup else 0
    return [
        f"--placement={'pre' if run.pre_norm else 'post'}",
        f"--warmup_steps={warmup}",
        f"--layers={config.layers}",
        f"--d_model={config.width}",
        f"--ffn_width={4 * config.width}",
        f"--steps={config.steps}",
        f"--batch_size={config.batch}",
        f"--vocab_size={config.vocab}",
        f"--seed={config.seed}",
        f"--run={run.name}",
    ]


def flatten(tree):
    """{"block_0/qkv/kernel": array, ...} of a parameter tree."""
    return {"/".join(path): value for path, value in flax.traverse_util.flatten_dict(tree).items()}


def read_dump(prefix):
    values = np.fromfile(f"{prefix}.bin", dtype="<f4")
    tensors, start = {}, 0
    for line in Path(f"{prefix}.txt").read_text(encoding="utf-8").splitlines():
        path, *shape = line.split(" ")
        shape = [int(size) for size in shape]
        count = math.prod(shape)
        tensors[path] = values[start : start + count].reshape(shape)
        start += count
    return tensors


def compare_start(engine, folder, run, config):
    """Initial weights and the first batches, bit for bit."""
    prefix = str(folder / "dump")
    subprocess.run([engine, *engine_options(run, config), f"--dump={prefix}"], check=True)
    ours = read_dump(prefix)
    theirs = flatten(article_jax.initial_parameters(config, run.pre_norm))
    label = f"{'pre' if run.pre_norm else 'post'}, seed {config.seed}, width {config.width}"
    check(ours.keys() == theirs.keys(), f"{label}: {len(theirs)} tensors have the same names")
    different = sum(
        int((ours[path].view(np.uint32) != np.asarray(theirs[path]).view(np.uint32)).sum())
        for path in ours.keys() & theirs.keys()
    )
    total = sum(value.size for value in theirs.values())
    check(different == 0, f"{label}: {different} of {total} initial weights differ")

    shape = (config.steps, config.batch, config.time)
    tokens, targets = (
        np.fromfile(f"{prefix}.{name}", "<i4").reshape(shape) for name in ("tokens", "targets")
    )
    equal = all(
        (tokens[step] == source).all() and (targets[step] == target).all()
        for step, (source, target) in zip(range(config.steps), article_jax.make_batches(config))
    )
    check(equal, f"{label}: {config.steps} batches are equal")


def read_curve(text):
    rows = list(csv.DictReader(text.splitlines()))
    return {key: [float(row[key]) for row in rows] for key in rows[0] if key not in ("run", "step")}


def worst_error(ours, theirs, steps):
    return max(abs(a / b - 1) for a, b in zip(ours[:steps], theirs[:steps]))


def compare_curves(engine, run, config):
    result = subprocess.run(
        [engine, *engine_options(run, config)], check=True, capture_output=True, text=True
    )
    print(result.stderr.strip())
    ours = read_curve(result.stdout)
    columns = list(zip(*article_jax.train(config, run)))
    theirs = dict(zip(("loss", "gradient_norm", "learning_rate"), columns[1:]))
    steps, loss_limit, norm_limit = LIMITS[run.name]
    for key, limit in (("loss", loss_limit), ("gradient_norm", norm_limit)):
        error = worst_error(ours[key], theirs[key], steps)
        check(error < limit, f"{run.name}: {key} of steps 1-{steps} within {error:.1e} of JAX")
    rate_error = worst_error(ours["learning_rate"], theirs["learning_rate"], config.steps)
    check(rate_error < 1e-6, f"{run.name}: learning rates within {rate_error:.1e}")
    if steps < 100:
        # Past the divergence horizon there is a band, not a number.
        for name, curve in (("engine", ours), ("JAX", theirs)):
            check(
                curve["loss"][-1] > 1 and max(curve["gradient_norm"]) > 1.5,
                f"{run.name}: {name} stalls, final loss {curve['loss'][-1]:.3f}",
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", required=True, help="the normlab-train-csv program")
    engine = parser.parse_args().engine
    print(f"jax {jax.__version__}, flax {flax.__version__}, numpy {np.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for run in RUNS[:2]:
            compare_start(engine, Path(folder), run, Config())
            # An odd batch leaves half a draw pending; 50 is no power of two, so draws are rejected.
            odd = Config(layers=2, width=20, vocab=50, batch=5, steps=40, seed=11)
            compare_start(engine, Path(folder), run, odd)
    for run in RUNS:
        compare_curves(engine, run, Config())
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
