"""Compares Transformer-XL, Switch layers and the encoder-decoder with PyTorch in double precision.

    python architectures_test.py --engine path/to/normlab-train-csv [--torch .../torch]

What is compared is as in placements_test.py.
"""

import dataclasses
import sys
import tempfile

import checks

ARGUMENTS = checks.parse_arguments(__doc__) if __name__ == "__main__" else None

import torch

import reference_architectures as reference
from comparison import Limits, compare
from reference_training import ReferenceRun

XL = reference.ArchitectureConfig(
    model="xl", positions="none", sequence_length=8, memory_length=12, table_length=40
)
SWITCH = reference.ArchitectureConfig(ffn="switch")
ENCDEC = reference.ArchitectureConfig(model="encdec", data="copy", layers=2)

# name: (settings, a model for one run, settings of a reference that is wrong)
CASES = {
    "xl": (XL, reference.TransformerXl, {"memory_length": 0}),
    "xl, nothing remembered": (
        dataclasses.replace(XL, memory_length=0), reference.TransformerXl, {"table_length": 1}
    ),
    "xl, reaching beyond its table": (
        dataclasses.replace(XL, table_length=5, norm="rmsnorm", activation="relu"),
        reference.TransformerXl, {"table_length": 4},
    ),
    "xl, remembering less than a segment": (
        dataclasses.replace(XL, memory_length=3), reference.TransformerXl, {"memory_length": 4}
    ),
    "switch": (SWITCH, reference.Switch, {"capacity_factor": 100.0}),
    "switch, overflow passed on": (
        dataclasses.replace(SWITCH, switch_overflow="pass", capacity_factor=0.7),
        reference.Switch, {"switch_overflow": "drop"},
    ),
    "switch, balance": (
        dataclasses.replace(SWITCH, balance_coefficient=1.0), reference.Switch,
        {"balance_coefficient": 0.0},
    ),
    "switch, post, swiglu": (
        dataclasses.replace(
            SWITCH, placement="post", final_norm=False, activation="swiglu", experts=3
        ),
        reference.Switch, {"capacity_factor": 100.0},
    ),
    "switch, two batches a step": (
        dataclasses.replace(SWITCH, accumulate=2, data="copy", balance_coefficient=1.0),
        reference.Switch, {"balance_coefficient": 0.0},
    ),
    "encdec pre": (ENCDEC, None, {"causal": False}),
    "encdec post": (
        dataclasses.replace(ENCDEC, placement="post", final_norm=False), None, {"causal": False}
    ),
    "encdec deepnorm": (
        dataclasses.replace(ENCDEC, placement="deepnorm", final_norm=False), None,
        {"placement": "post"},
    ),
    "encdec, options": (
        dataclasses.replace(
            ENCDEC, data="reverse", positions="rotary", norm="rmsnorm", activation="swiglu",
            layers=3, decoder_layers=2,
        ),
        None, {"positions": "none"},
    ),
    "encdec, sinusoidal": (
        dataclasses.replace(ENCDEC, positions="sinusoidal"), None, {"positions": "none"}
    ),
}  # fmt: skip


def main():
    print(f"torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (config, run_model, mistake) in CASES.items():
            if ARGUMENTS.only not in name:
                continue
            make = run_model or (lambda: reference.encoder_decoder_logits)
            compared = compare(name, config, folder, ARGUMENTS.engine, make)
            mistaken = dataclasses.replace(config, **mistake)
            loss, norm = compared.errors_of(mistaken, make())
            checks.check(
                loss > 100 * Limits().loss or norm > 100 * Limits().norm,
                f"{name}: {mistake} differs, loss by {loss:.0e}, norm by {norm:.0e}",
            )
            if run_model is reference.Switch:
                switch = reference.Switch()
                ReferenceRun(config, compared.weights, switch).train(compared.steps)
                checks.check(switch.dropped > 0, f"{name}: {switch.dropped} tokens found no room")
    checks.finish()


if __name__ == "__main__":
    sys.exit(main())
