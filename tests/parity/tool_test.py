"""Tests normlab-train-csv itself, and the weights that it reads and writes.

    python tool_test.py --engine path/to/normlab-train-csv [--torch .../torch]
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import checks

ARGUMENTS = checks.parse_arguments(__doc__) if __name__ == "__main__" else None

import numpy as np
import safetensors.numpy

import engine
from comparison import SMALL, of_placement

TRAINER_H = Path(__file__).parents[2] / "server" / "trainer" / "trainer.h"


def declared_settings():
    """{name: default as text} of the fields of TrainingSettings."""
    text = TRAINER_H.read_text(encoding="utf-8")
    body = re.search(r"struct TrainingSettings \{(.*?)\n\};", text, re.DOTALL).group(1)
    body = re.sub(r"//[^\n]*", "", body)
    fields = re.findall(r"(?:std::string|double|int64_t|bool)\s+(\w+)(?:\s*=\s*([^;]+))?;", body)
    return {name: default.strip().strip('"') for name, default in fields}


def check_every_setting_is_an_option():
    listed = dict(
        line.split("=", 1) for line in engine.run(ARGUMENTS.engine, ["--settings"]).splitlines()
    )
    declared = declared_settings()
    checks.check(
        listed.keys() == declared.keys(),
        f"all {len(declared)} settings are options; different: {listed.keys() ^ declared.keys()}",
    )

    def value(text):
        try:
            return float(text)
        except ValueError:
            return text

    different = [name for name in declared if value(declared[name]) != value(listed.get(name))]
    checks.check(not different, f"defaults are those declared; different: {different}")


def check_options_are_checked():
    for option, wanted in (
        ("--layer=2", "unknown option --layer"),
        ("--layers=two", "is no number"),
        ("--causal=perhaps", "neither true nor false"),
        ("layers=2", "expected --name=value"),
    ):
        result = subprocess.run([ARGUMENTS.engine, option], capture_output=True, text=True)
        checks.check(result.returncode == 2 and wanted in result.stderr, f"{option} is refused")
    settings = engine.run(ARGUMENTS.engine, ["--set", "layers=3", "--init-file=w", "--settings"])
    checks.check("layers=3\n" in settings and "init_file=w\n" in settings, "--set and --init-file")


def check_weights_travel(folder):
    """Initial weights written by the engine, read by the safetensors library, and back."""
    config = of_placement("normformer", SMALL)
    start = engine.dump(ARGUMENTS.engine, folder, config)
    written = str(Path(folder) / "written.safetensors")
    engine.run(ARGUMENTS.engine, engine.arguments(config, save_init=written))
    tensors = safetensors.numpy.load_file(written)
    same = tensors.keys() == start.weights.keys() and all(
        value.dtype == np.float32 and np.array_equal(value, start.weights[path])
        for path, value in tensors.items()
    )
    checks.check(same, f"the safetensors library reads the {len(tensors)} tensors the engine wrote")

    plain = engine.train(ARGUMENTS.engine, config)
    read = engine.train(ARGUMENTS.engine, config, init_file=written, init="gpt2")
    checks.check(plain == read, "a run from its own initial weights in a file has the same bits")

    halves = {path: value.astype(np.float16) for path, value in tensors.items()}
    file = str(Path(folder) / "halves.safetensors")
    safetensors.numpy.save_file(halves, file)
    rounded = engine.dump(ARGUMENTS.engine, folder, config, init_file=file).weights
    same = all(
        np.array_equal(rounded[path], value.astype(np.float32)) for path, value in halves.items()
    )
    checks.check(same, "16-bit weights of the safetensors library are read exactly")

    del tensors["block_1/head_scale"]
    safetensors.numpy.save_file(tensors, file)
    result = subprocess.run(
        [ARGUMENTS.engine, *engine.arguments(config, init_file=file)],
        capture_output=True,
        text=True,
    )
    checks.check(
        result.returncode == 2 and "block_1/head_scale" in result.stderr,
        "weights that are missing are refused by name",
    )


def main():
    check_every_setting_is_an_option()
    check_options_are_checked()
    with tempfile.TemporaryDirectory() as folder:
        check_weights_travel(folder)
    checks.finish()


if __name__ == "__main__":
    sys.exit(main())
