"""The article's experiment in JAX, Flax and Optax: an independent oracle for the engine.

Written from the description of the experiment, not from the engine: three runs of a small decoder on
arithmetic progressions, with the norm before or after the residual sum. Writes the curves as CSV and
says how long everything took, compilation included.

    python article_jax.py --output curves.csv
"""

import argparse
import csv
import functools
import sys
import time
from dataclasses import dataclass

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


@dataclass(frozen=True)
class Config:
    layers: int = 12
    width: int = 64
    heads: int = 4
    vocab: int = 64
    time: int = 32
    batch: int = 24
    steps: int = 180
    learning_rate: float = 2e-3
    seed: int = 7


@dataclass(frozen=True)
class Run:
    name: str
    pre_norm: bool
    warmup: bool


RUNS = [
    Run("Pre-Norm · no warmup", pre_norm=True, warmup=False),
    Run("Post-Norm · no warmup", pre_norm=False, warmup=False),
    Run("Post-Norm · 120-step warmup", pre_norm=False, warmup=True),
]


class Block(nn.Module):
    """One Transformer block; `pre_norm` says on which side of the residual sum the norms stand."""

    heads: int
    pre_norm: bool

    def attend(self, x):
        batch, length, width = x.shape
        dense = functools.partial(nn.Dense, kernel_init=nn.initializers.lecun_normal())
        q, k, v = jnp.split(dense(3 * width, name="qkv")(x), 3, axis=-1)

        def per_head(t):
            return t.reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3)

        q, k, v = per_head(q), per_head(k), per_head(v)
        scores = q @ k.swapaxes(-1, -2) / jnp.sqrt(q.shape[-1])
        visible = jnp.tril(jnp.ones((length, length), dtype=bool))
        weights = jax.nn.softmax(jnp.where(visible, scores, -1e30), axis=-1)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width)
        return dense(width, name="attention_output")(mixed)

    def transform(self, x):
        width = x.shape[-1]
        hidden = nn.gelu(nn.Dense(4 * width, name="mlp_in")(x), approximate=True)
        return nn.Dense(width, name="mlp_out")(hidden)

    @nn.compact
    def __call__(self, x):
        attention_norm = nn.LayerNorm(name="attention_norm")
        mlp_norm = nn.LayerNorm(name="mlp_norm")
        if self.pre_norm:
            x = x + self.attend(attention_norm(x))
            return x + self.transform(mlp_norm(x))
        x = attention_norm(x + self.attend(x))
        return mlp_norm(x + self.transform(x))


class Decoder(nn.Module):
    config: Config
    pre_norm: bool

    @nn.compact
    def __call__(self, tokens):
        s = self.config
        embed = nn.Embed(
            s.vocab, s.width, embedding_init=nn.initializers.normal(1.0), name="embedding"
        )
        position = self.param("position", nn.initializers.zeros, (1, s.time, s.width))
        x = embed(tokens) + position
        for i in range(s.layers):
            x = Block(s.heads, self.pre_norm, name=f"block_{i}")(x)
        if self.pre_norm:
            x = nn.LayerNorm(name="final_norm")(x)
        head = nn.Dense(
            s.vocab, use_bias=False, kernel_init=nn.initializers.normal(0.02), name="output"
        )
        return head(x)


def make_schedule(config, warmup):
    """Linear warmup over two thirds of the run: the first update already has rate / steps."""
    if not warmup:
        return lambda count: jnp.asarray(config.learning_rate)
    steps = max(1, 2 * config.steps // 3)
    return lambda count: config.learning_rate * jnp.minimum(1.0, (count + 1) / steps)


def make_batches(config):
    """Endless batches of arithmetic progressions with step one, modulo the vocabulary."""
    generator = np.random.default_rng(config.seed + 116)
    offsets = np.arange(config.time + 1, dtype=np.int32)
    while True:
        starts = generator.integers(0, config.vocab, size=(config.batch, 1), dtype=np.int32)
        rows = (starts + offsets) % config.vocab
        yield rows[:, :-1], rows[:, 1:]


def initial_parameters(config, pre_norm):
    dummy = jnp.zeros((config.batch, config.time), dtype=jnp.int32)
    return Decoder(config, pre_norm).init(jax.random.PRNGKey(config.seed), dummy)["params"]


def train(config, run):
    """Yields (step, loss, gradient norm, learning rate), the first two before the step's update."""
    model = Decoder(config, run.pre_norm)
    parameters = initial_parameters(config, run.pre_norm)
    schedule = make_schedule(config, run.warmup)
    optimizer = optax.adamw(schedule, b1=0.9, b2=0.95, eps=1e-8, weight_decay=0.01)
    state = optimizer.init(parameters)

    @jax.jit
    def train_step(parameters, state, source, target):
        def loss_of(parameters):
            logits = model.apply({"params": parameters}, source)
            return optax.softmax_cross_entropy_with_integer_labels(logits, target).mean()

        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss, optax.global_norm(gradients)

    batches = make_batches(config)
    for step in range(1, config.steps + 1):
        source, target = next(batches)
        parameters, state, loss, norm = train_step(parameters, state, source, target)
        yield step, float(loss), float(norm), float(schedule(step - 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--steps", type=int, default=180)
    parser.add_argument("--output", default="-")
    arguments = parser.parse_args()
    config = Config(layers=arguments.layers, steps=arguments.steps)

    out = sys.stdout if arguments.output == "-" else open(arguments.output, "w", encoding="utf-8")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["run", "step", "loss", "gradient_norm", "learning_rate"])
    started = time.perf_counter()
    for run in RUNS:
        run_started = time.perf_counter()
        for row in train(config, run):
            writer.writerow([run.name, *row])
        seconds = time.perf_counter() - run_started
        print(f"{run.name}: {seconds:.1f} s", file=sys.stderr)
    print(f"total: {time.perf_counter() - started:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
