"""Checks what the engine draws as initial weights against the distributions that `init` names.

    python initialization_test.py --engine path/to/normlab-train-csv [--torch .../torch]

Every tensor is compared with its distribution: the shape by a Kolmogorov-Smirnov test, the scale by
its mean square, whose distribution is known as well. (`flax` is compared with Flax itself, bit for
bit, in parity_test.py.) The omegas of `admin` are compared with the profiling forward done by
PyTorch.
"""

import dataclasses
import math
import sys
import tempfile

import checks

ARGUMENTS = checks.parse_arguments(__doc__) if __name__ == "__main__" else None

import numpy as np
import torch
from scipy import stats

import engine
import reference_model as model
from comparison import as_tensors, of_placement
from reference_model import Config

# Fewer than one tensor in a million fails by chance; the draws are those of one seed, so they never
# change.
SMALLEST_P = 1e-6
LARGEST_SIGMA = 5.0

CONFIG = Config(layers=6, d_model=64, ffn_width=192, vocab_size=96, steps=1)


def normal(deviation):
    return stats.norm(scale=deviation)


def uniform(bound):
    return stats.uniform(loc=-bound, scale=2 * bound)


def truncated(deviation):
    """A normal cut at two of its deviations, so scaled that its variance is deviation^2."""
    scale = deviation / 0.87962566
    return stats.truncnorm(-2, 2, scale=scale)


def xavier_normal(fan_in, fan_out, gain=1.0):
    return normal(gain * math.sqrt(2 / (fan_in + fan_out)))


def xavier_uniform(fan_in, fan_out):
    return uniform(math.sqrt(6 / (fan_in + fan_out)))


def kernel_shapes(config):
    """{kernel of a block: (fan_in, fan_out)}; q, k and v are three matrices, drawn as such."""
    d, width = config.d_model, config.ffn_width
    return {
        "query": (d, d),
        "key": (d, d),
        "value": (d, d),
        "attention_output/kernel": (d, d),
        "mlp_in/kernel": (d, width),
        "mlp_out/kernel": (width, d),
    }


def kernels(config, distribution):
    return {
        f"block_{i}/{name}": distribution(name, *fans)
        for i in range(config.layers)
        for name, fans in kernel_shapes(config).items()
    }


def expected_flax(config):
    return {
        **kernels(config, lambda _, fan_in, __: truncated(fan_in**-0.5)),
        "embedding/embedding": normal(1),
        "output/kernel": normal(0.02),
    }


def expected_gpt2(config):
    def distribution(name, *_):
        is_output = name in ("attention_output/kernel", "mlp_out/kernel")
        return normal(0.02 / math.sqrt(2 * config.layers) if is_output else 0.02)

    return {
        **kernels(config, distribution),
        "embedding/embedding": normal(0.02),
        "position": normal(0.02),
        "output/kernel": normal(0.02),
    }


def expected_xavier(config):
    return {
        **kernels(config, lambda _, *fans: xavier_uniform(*fans)),
        "embedding/embedding": normal(1),
        "output/kernel": xavier_uniform(config.d_model, config.vocab_size),
    }


def expected_torch(config):
    """The distributions of torch.nn.Linear and torch.nn.Embedding, as the oracle's check shows."""
    biases = {
        name.replace("kernel", "bias") if "/" in name else f"{name} bias": fans
        for name, fans in kernel_shapes(config).items()
    }
    return {
        **kernels(config, lambda _, fan_in, __: uniform(fan_in**-0.5)),
        **{
            f"block_{i}/{name}": uniform(fan_in**-0.5)
            for i in range(config.layers)
            for name, (fan_in, _) in biases.items()
        },
        "embedding/embedding": normal(1),
        "output/kernel": uniform(config.d_model**-0.5),
    }


def expected_fan_in(config):
    return {
        **kernels(config, lambda _, fan_in, __: normal(fan_in**-0.5)),
        "embedding/embedding": normal(1),
        "output/kernel": normal(config.d_model**-0.5),
    }


def expected_deepnorm(config):
    beta = (8 * config.layers) ** -0.25

    def distribution(name, *fans):
        return xavier_normal(*fans, gain=1 if name in ("query", "key") else beta)

    return {
        **kernels(config, distribution),
        "embedding/embedding": normal(1),
        "output/kernel": normal(0.02),
    }


def expected_admin(config):
    return {
        **kernels(config, lambda _, *fans: xavier_uniform(*fans)),
        "embedding/embedding": normal(1),
        "output/kernel": normal(0.02),
    }


EXPECTED = {
    "flax": ("pre", expected_flax),
    "gpt2": ("pre", expected_gpt2),
    "xavier": ("pre", expected_xavier),
    "torch": ("pre", expected_torch),
    "fan-in": ("pre", expected_fan_in),
    "deepnorm": ("deepnorm", expected_deepnorm),
    "admin": ("admin", expected_admin),
}


def chance(values, distribution):
    """The p value of the shape (0 outside the distribution's bounds), and by how many standard
    deviations the mean square is off."""
    low, high = distribution.support()
    inside = low * (1 + 1e-6) <= values.min() and values.max() <= high * (1 + 1e-6)
    variance = distribution.moment(4) - distribution.moment(2) ** 2
    sigma = math.sqrt(variance / values.size)
    squares = values.astype(np.float64) ** 2
    return (
        stats.kstest(values.ravel(), distribution.cdf).pvalue if inside else 0.0,
        (squares.mean() - distribution.moment(2)) / sigma,
    )


def split_query_key_value(weights):
    """The fused kernels and biases of q, k and v as three each."""
    tensors = {}
    for path, value in weights.items():
        if "/qkv/" not in path:
            tensors[path] = value
            continue
        block = path.split("/")[0]
        suffix = " bias" if path.endswith("bias") else ""
        for name, part in zip(("query", "key", "value"), np.split(value, 3, axis=-1)):
            tensors[f"{block}/{name}{suffix}"] = part
    return tensors


def check_constants(init, weights, drawn):
    """All that is not drawn is 0, or 1 where it is a scale."""
    wrong = [
        path
        for path, value in weights.items()
        if path not in drawn
        and not path.endswith("_omega")
        and not (value == (1 if path.endswith("scale") else 0)).all()
    ]
    checks.check(not wrong, f"{init}: biases and positions 0, gains 1; wrong are {wrong}")


def check_independence(init, weights, drawn):
    """No two tensors of one shape are copies, nor any multiples, of each other."""
    largest = 0.0
    by_shape = {}
    for path in drawn:
        by_shape.setdefault(weights[path].shape, []).append(weights[path].ravel())
    for tensors in by_shape.values():
        if len(tensors) < 2 or len(tensors[0]) < 1000:
            continue
        correlations = np.corrcoef(tensors) - np.eye(len(tensors))
        largest = max(largest, abs(correlations).max() * math.sqrt(len(tensors[0])))
    # Of a correlation of n independent pairs, sqrt(n) times it is a standard normal.
    checks.check(largest < 6, f"{init}: no copies (correlation {largest:.1f} sigma)")


def check_distributions(init, folder):
    placement, expected = EXPECTED[init]
    config = of_placement(placement, CONFIG, init=init)
    weights = split_query_key_value(engine.dump(ARGUMENTS.engine, folder, config).weights)
    distributions = expected(config)
    missing = distributions.keys() - weights.keys()
    checks.check(not missing, f"{init}: has all {len(distributions)} tensors; missing {missing}")
    chances = {path: chance(weights[path], distributions[path]) for path in distributions}
    p, sigma = min(p for p, _ in chances.values()), max(abs(s) for _, s in chances.values())
    checks.check(
        p > SMALLEST_P and sigma < LARGEST_SIGMA,
        f"{init}: {len(chances)} tensors distributed as stated (p > {p:.1e}, {sigma:.1f} sigma)",
    )
    check_constants(init, weights, distributions)
    check_independence(init, weights, distributions)


def check_oracle():
    """The stated distributions of `torch` are those of PyTorch's own layers, and a scale
    that is 5 % off and a normal in the place of a truncated one are noticed."""
    torch.manual_seed(0)
    linear, embedding = torch.nn.Linear(64, 192), torch.nn.Embedding(96, 64)
    for name, tensor, distribution in (
        ("kernel", linear.weight, uniform(64**-0.5)),
        ("bias", linear.bias, uniform(64**-0.5)),
        ("embedding", embedding.weight, normal(1)),
    ):
        p, sigma = chance(tensor.detach().numpy(), distribution)
        checks.check(
            p > SMALLEST_P and abs(sigma) < LARGEST_SIGMA,
            f"PyTorch's own {name} is distributed as stated (p {p:.1e}, {sigma:.1f} sigma)",
        )
    _, sigma = chance(linear.weight.detach().numpy(), uniform(1.05 * 64**-0.5))
    checks.check(abs(sigma) > LARGEST_SIGMA, f"a scale that is 5 % off is noticed ({sigma:.1f})")
    p, _ = chance(embedding.weight.detach().numpy(), truncated(1))
    checks.check(p < SMALLEST_P, f"a normal is no truncated normal (p {p:.1e})")


def profiled_omegas(config, weights, batch):
    """Liu et al. 2020, section 4.2: r = 1; at every sublayer omega = r, then r^2 becomes the
    variance of omega x plus that of F(x), each over all entries of the batch."""
    tensors = {path: torch.tensor(value, dtype=torch.float64) for path, value in weights.items()}
    weights = model.Weights(tensors)
    omegas = {}
    x, r = model.embed(config, weights, batch), 1.0
    for index in range(config.layers):
        b = model.Block(config, weights, index)
        for name, branch_of in (("attention", b.attention), ("mlp", b.feed_forward)):
            omegas[f"block_{index}/{name}_omega"] = omega = r
            branch = b.branch(branch_of(x))
            r = math.sqrt((omega * x).var(correction=0) + branch.var(correction=0))
            x = b.norm(f"{name}_norm", omega * x + branch)
    return omegas


def check_admin(folder, **settings):
    config = of_placement("admin", CONFIG, init="admin", **settings)
    start = engine.dump(ARGUMENTS.engine, folder, config)
    first = as_tensors(start.steps)[0][0]
    expected = profiled_omegas(config, start.weights, first)
    error = max(abs(start.weights[path] / omega - 1).max() for path, omega in expected.items())
    last = expected[f"block_{config.layers - 1}/mlp_omega"]
    checks.check(
        error < 1e-5,
        f"admin {settings}: {len(expected)} profiled omegas, 1 to {last:.3f}, within {error:.1e}",
    )
    plain = engine.dump(ARGUMENTS.engine, folder, dataclasses.replace(config, init="flax"))
    same = all(
        np.array_equal(a[name], b[name])
        for a, b in zip(plain.steps[0], start.steps[0], strict=True)
        for name in a
    )
    checks.check(same, "admin: profiling consumes no batch")


def main():
    print(f"torch {torch.__version__}, numpy {np.__version__}")
    check_oracle()
    with tempfile.TemporaryDirectory() as folder:
        for init in EXPECTED:
            if ARGUMENTS.only in init:
                check_distributions(init, folder)
        if ARGUMENTS.only in "admin":
            check_admin(folder)
            check_admin(folder, residual_scale=0.5, norm="rmsnorm")
    checks.finish()


if __name__ == "__main__":
    sys.exit(main())
