"""Reads the engine's checkpoints with the safetensors library, and gives the engine files of it.

    python safetensors_test.py --engine path/to/normlab-train-csv

Exit status: 0 equal, 1 different, 77 skipped because safetensors is not installed (an error under
CI=true).
"""

import argparse
import csv
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77

try:
    import numpy as np
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
except ImportError as error:
    print(f"safetensors is not here ({error}); install it with:")
    print("  python3 -m venv .venv-test")
    print("  .venv-test/bin/pip install -r tests/parity/requirements.txt")
    sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)

SETTINGS = {
    "layers": 2,
    "d_model": 16,
    "heads": 2,
    "ffn_width": 32,
    "vocab_size": 12,
    "sequence_length": 8,
    "batch_size": 6,
    "steps": 10,
    "learning_rate": 0.02,
}

failures = []


def check(condition, message):
    print(("ok      " if condition else "FAILED  ") + message)
    if not condition:
        failures.append(message)


def train(engine, **settings):
    """Losses of a run, or what it says on standard error if it fails."""
    options = [f"--{name}={value}" for name, value in {**SETTINGS, **settings}.items()]
    done = subprocess.run([engine, *options], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stderr
    return [float(row["loss"]) for row in csv.DictReader(io.StringIO(done.stdout))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", required=True)
    engine = parser.parse_args().engine
    with tempfile.TemporaryDirectory(prefix="normlab-safetensors-") as name:
        folder = Path(name)
        straight = train(engine, checkpoint_directory=folder, checkpoint_every=10)
        checkpoint = folder / "step-000000000010.safetensors"
        with safe_open(checkpoint, "np") as file:
            metadata = file.metadata()
        tensors = load_file(checkpoint)
        check(metadata["step"] == "10", "the metadata say which step it is")
        check(metadata["setting.layers"] == "2", "and which settings")
        check(tensors["block_0/qkv/kernel"].shape == (16, 48), "a kernel has its shape")
        moments = tensors["normlab/optimizer/second_moment/block_0/qkv/kernel"]
        check((moments >= 0).all() and moments.max() > 0, "second moments are squares")
        check(tensors["normlab/data"].dtype == np.uint64, "the data's state are whole numbers")
        losses = tensors["normlab/losses"]
        check(losses.tolist() == straight, "the losses are those of the curve, to the last bit")

        # Only the weights, once as they are and once in other number formats.
        weights = {key: value for key, value in tensors.items() if not key.startswith("normlab/")}
        save_file(weights, folder / "weights.safetensors")
        warm = train(engine, init_file=folder / "weights.safetensors")
        check(warm == train(engine, init_file=checkpoint), "a file of the library starts a run")
        check(warm[0] < straight[0], "with what was learnt: the same first batch costs less")
        for dtype in (np.float16, np.float64):
            converted = {key: value.astype(dtype) for key, value in weights.items()}
            save_file(converted, folder / "other.safetensors")
            other = train(engine, init_file=folder / "other.safetensors")
            near = 1e-2 if dtype == np.float16 else 0
            check(abs(other[0] - warm[0]) <= near, f"also as {dtype.__name__}")

        del weights["output/kernel"]
        save_file(weights, folder / "less.safetensors")
        refusal = train(engine, init_file=folder / "less.safetensors")
        check("output/kernel" in refusal, "a missing weight is named")

        resumed = train(engine, resume_from=checkpoint, steps=20)
        check(len(resumed) == 10, "a checkpoint is gone on from")
        # What another program rewrote, with another order and header, is the same checkpoint.
        save_file(dict(reversed(tensors.items())), folder / "again.safetensors", metadata)
        again = train(engine, resume_from=folder / "again.safetensors", steps=20)
        check(again == resumed, "also when the library wrote it anew")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
