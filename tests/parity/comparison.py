"""Compares one run of the engine with a reference: what most of the parity tests do."""

import dataclasses
import math
import zlib
from pathlib import Path

import numpy as np
import torch

import checks
import engine
from reference_model import Config, decoder_logits
from reference_training import ReferenceRun


@dataclasses.dataclass(frozen=True)
class Limits:
    """Largest relative errors; README.md says why these."""

    gradient: float = 1e-5
    loss: float = 1e-6
    norm: float = 5e-6


SMALL = Config()
ARTICLE = Config(
    layers=12, d_model=64, ffn_width=256, vocab_size=64, sequence_length=32, batch_size=24
)

# What `auto` means for each placement.
QUERY_KEY_NORMS = {"olmo2": "rms-full", "hybrid": "rms-head", "hybrid-star": "rms-head"}
WITHOUT_FINAL_NORM = {
    "post", "post-single", "deepnorm", "admin", "b2t", "rezero", "residual-dual", "none"
}  # fmt: skip


def of_placement(placement, base=SMALL, **settings):
    defaults = {
        "norm": "rmsnorm" if placement in QUERY_KEY_NORMS else "layernorm",
        "qk_norm": QUERY_KEY_NORMS.get(placement, "off"),
        "final_norm": placement not in WITHOUT_FINAL_NORM,
    }
    return dataclasses.replace(base, placement=placement, **{**defaults, **settings})


def away_from_special_values(weights, seed):
    """The engine's initial weights with noise on everything: no gain is 1, no bias 0. Matrices get
    less of it, to stay near the size that keeps a stream without norms from growing."""
    generator = np.random.default_rng(seed)
    return {
        path: value
        + (0.02 if value.ndim > 1 else 0.2)
        * generator.standard_normal(value.shape).astype(np.float32)
        for path, value in weights.items()
    }


def as_tensors(steps):
    return [
        [{name: torch.tensor(value) for name, value in batch.items()} for batch in batches]
        for batches in steps
    ]


def curve_errors(ours, theirs):
    """The largest relative errors of loss and gradient norm over the steps that `theirs` has."""
    pairs = list(zip(ours, theirs))
    return [max(abs(a[i] - b[i]) / abs(b[i]) for a, b in pairs) for i in (0, 1)]


def gradient_errors(ours, theirs):
    """{path: largest error over the tensor's largest entry}. A tensor with entries below a
    hundredth of the whole gradient's norm is what is left of large terms that cancel: it is
    measured against that hundredth."""
    assert ours.keys() == theirs.keys()
    norm = math.sqrt(sum((value**2).sum() for value in theirs.values()))
    return {
        path: abs(ours[path] - value).max() / max(abs(value).max(), 0.01 * norm)
        for path, value in theirs.items()
    }


@dataclasses.dataclass
class Compared:
    """What one case started from and what the engine made of it."""

    config: Config
    weights: dict  # {path: array}
    steps: list  # of lists of batches
    curve: list  # of (loss, gradient norm, learning rate)

    def errors_of(self, config, logits=decoder_logits, steps=None):
        """Errors of the curve against another reference: other settings or formulas."""
        return curve_errors(
            self.curve, ReferenceRun(config, self.weights, logits).train(self.steps[:steps])
        )


def compare(name, config, folder, program, make_logits=lambda: decoder_logits, limits=Limits()):
    """Checks a case. `make_logits` returns the model as a function of (config, tensors, batch);
    it is called for every run, because a model may remember."""
    drawn = engine.dump(program, folder, config)
    weights = away_from_special_values(drawn.weights, seed=zlib.crc32(name.encode()))
    file = str(Path(folder) / "weights.safetensors")
    engine.write_weights(file, weights)
    start = engine.dump(program, folder, config, init_file=file)
    carried = all(np.array_equal(start.weights[path], weights[path]) for path in weights)
    steps = as_tensors(start.steps)

    first_step = ReferenceRun(config, weights, make_logits())
    first_step.backward(steps[0])
    errors = gradient_errors(start.gradients, first_step.gradients())
    worst = max(errors, key=errors.get)
    ours = engine.train(program, config, init_file=file)
    theirs = ReferenceRun(config, weights, make_logits()).train(steps)
    loss, norm = curve_errors(ours, theirs)
    checks.check(
        carried
        and len(ours) == len(theirs) == config.steps
        and errors[worst] < limits.gradient
        and loss < limits.loss
        and norm < limits.norm,
        f"{name}: gradients within {errors[worst]:.0e} ({worst}); "
        f"{len(ours)} steps: loss within {loss:.0e}, norm within {norm:.0e}",
    )
    return Compared(config, weights, steps, ours)
