"""Runs normlab-train-csv and reads what it writes."""

import csv
import dataclasses
import math
import subprocess
from pathlib import Path

import numpy as np
import safetensors.numpy


def arguments(config, **more):
    """Every setting as an argument of the program; a dataclass of settings and further ones."""
    settings = {**dataclasses.asdict(config), **more}
    texts = {True: "true", False: "false"}
    return [
        f"--{name}={texts[value] if isinstance(value, bool) else value}"
        for name, value in settings.items()
    ]


def run(engine, options):
    result = subprocess.run([engine, *options], capture_output=True, text=True)
    if result.returncode not in (0, 5):
        raise RuntimeError(f"{' '.join(options)}: {result.stderr.strip()}")
    return result.stdout


def train(engine, config, **more):
    """[(loss, gradient norm, learning rate)] of each step."""
    rows = csv.DictReader(run(engine, arguments(config, **more)).splitlines())
    columns = ("loss", "gradient_norm", "learning_rate")
    return [tuple(float(row[column]) for column in columns) for row in rows]


def split_by_shape(prefix, name):
    """{path: array} of PREFIX.NAME, laid out as PREFIX.txt says."""
    values = np.fromfile(f"{prefix}.{name}", dtype="<f4")
    tensors, start = {}, 0
    for line in Path(f"{prefix}.txt").read_text(encoding="utf-8").splitlines():
        path, *shape = line.split(" ")
        shape = [int(size) for size in shape]
        count = math.prod(shape)
        tensors[path] = values[start : start + count].reshape(shape)
        start += count
    assert start == len(values), f"{prefix}.{name} has {len(values)} numbers, not {start}"
    return tensors


@dataclasses.dataclass
class Start:
    """What the engine starts a run from, and its first step."""

    weights: dict  # {path: array}
    gradients: dict  # likewise, of step 1
    steps: list  # of lists of batches {"tokens", "targets", ...}: arrays [batch, time]
    logits: np.ndarray  # [batch, time, vocab] of the last batch of step 1
    blocks: np.ndarray  # [1 + layers, batch, time, d]: input of the first block, outputs of all


def dump(engine, folder, config, **more):
    prefix = str(Path(folder) / "dump")
    run(engine, arguments(config, dump=prefix, **more))
    rows = (config.batch_size, config.sequence_length)
    shape = (config.steps, config.accumulate)
    batches = {}
    for name, dtype, tail in (
        ("tokens", "<i4", rows),
        ("targets", "<i4", rows),
        ("source", "<i4", rows),
        ("source_lengths", "<i4", rows[:1]),
        ("inputs", "<f4", (*rows, config.d_model)),
    ):
        if Path(f"{prefix}.{name}").exists():
            values = np.fromfile(f"{prefix}.{name}", dtype=dtype).reshape(*shape, *tail)
            batches[name] = values.astype(np.int64 if dtype == "<i4" else np.float64)

    def batch(step, index):
        return {name: values[step, index] for name, values in batches.items()}

    return Start(
        weights=split_by_shape(prefix, "bin"),
        gradients=split_by_shape(prefix, "gradients"),
        steps=[[batch(s, i) for i in range(config.accumulate)] for s in range(config.steps)],
        logits=np.fromfile(f"{prefix}.logits", dtype="<f4").reshape(*rows, config.vocab_size),
        blocks=np.fromfile(f"{prefix}.blocks", dtype="<f4").reshape(-1, *rows, config.d_model),
    )


def write_weights(path, tensors):
    arrays = {name: np.ascontiguousarray(value, np.float32) for name, value in tensors.items()}
    safetensors.numpy.save_file(arrays, path)
