#!/usr/bin/env python3
"""Prints the expected block outputs of placement_golden_test.cc.

Double precision in plain Python, written from the formulas of the papers; nothing of the engine is
used. One sequence of 3 tokens, width 4, 2 heads, feed-forward width 6, block number 2 of 3.
"""
import math

TIME, WIDTH, HEADS, HIDDEN, LAYERS, EPSILON = 3, 4, 2, 6, 3, 1e-6

# The position in this list is part of the formula of a parameter's values.
NAMES = [
    "qkv/kernel", "qkv/bias", "attention_output/kernel", "attention_output/bias",
    "mlp_in/kernel", "mlp_in/bias", "mlp_out/kernel", "mlp_out/bias",
    "norm/scale", "norm/bias", "attention_norm/scale", "attention_norm/bias",
    "mlp_norm/scale", "mlp_norm/bias", "attention_output_norm/scale", "attention_output_norm/bias",
    "mlp_output_norm/scale", "mlp_output_norm/bias", "mlp_hidden_norm/scale",
    "mlp_hidden_norm/bias", "q_norm/scale", "k_norm/scale", "v_norm/scale", "head_scale",
    "attention_omega", "mlp_omega", "rezero_scale", "attention_lambda", "mlp_lambda",
    "dual_norm/scale", "dual_norm/bias",
]


def parameter(name, i):
    w = ((NAMES.index(name) * 31 + i * 17) % 23 - 11) / 32
    return w if name.endswith(("kernel", "bias")) else 1 + w / 4


def vector(name, n):
    return [parameter(name, i) for i in range(n)]


def linear(name, x, n_out):
    out = []
    for row in x:
        y = vector(name + "/bias", n_out)
        for i, value in enumerate(row):
            for j in range(n_out):
                y[j] += value * parameter(name + "/kernel", i * n_out + j)
        out.append(y)
    return out


def layer_norm(name, x):
    out = []
    for row in x:
        mean = sum(row) / len(row)
        variance = sum((v - mean) ** 2 for v in row) / len(row)
        out.append([parameter(name + "/scale", i) * (v - mean) / math.sqrt(variance + EPSILON)
                    + parameter(name + "/bias", i) for i, v in enumerate(row)])
    return out


def rms(name, row):
    mean_square = sum(v * v for v in row) / len(row)
    return [parameter(name + "/scale", i) * v / math.sqrt(mean_square + EPSILON)
            for i, v in enumerate(row)]


def rms_norm(name, x):
    return [rms(name, row) for row in x]


def normed(name, rows, how):
    """q, k or v [time, width], normed over each head or over the full width."""
    size = WIDTH // HEADS if how == "head" else WIDTH
    return [sum((rms(name, row[i:i + size]) for i in range(0, WIDTH, size)), []) for row in rows]


def heads(x, qk=None, values=False):
    qkv = linear("qkv", x, 3 * WIDTH)
    q, k, v = ([row[p * WIDTH:(p + 1) * WIDTH] for row in qkv] for p in range(3))
    if qk:
        q, k = normed("q_norm", q, qk), normed("k_norm", k, qk)
        v = normed("v_norm", v, qk) if values else v
    size = WIDTH // HEADS
    out = [[0.0] * WIDTH for _ in range(TIME)]
    for h in range(HEADS):
        part = range(h * size, (h + 1) * size)
        for t in range(TIME):
            weights = [math.exp(sum(q[t][c] * k[s][c] for c in part) / math.sqrt(size))
                       for s in range(t + 1)]
            for c in part:
                out[t][c] = sum(w * v[s][c] for s, w in enumerate(weights)) / sum(weights)
    return out


def attention(x, **how):
    return linear("attention_output", heads(x, **how), WIDTH)


def hidden(x):
    def gelu(v):
        return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))
    return [[gelu(v) for v in row] for row in linear("mlp_in", x, HIDDEN)]


def feed_forward(x):
    return linear("mlp_out", hidden(x), WIDTH)


def add(*terms):
    return [[sum(values) for values in zip(*rows)] for rows in zip(*terms)]


def times(factor, x):
    """A number, or one number a column."""
    if isinstance(factor, (int, float)):
        factor = [factor] * len(x[0])
    return [[f * v for f, v in zip(factor, row)] for row in x]


A, M, N, R = attention, feed_forward, layer_norm, rms_norm


def pre(x, **how):
    norm = R if how else N
    u = add(x, A(norm("attention_norm", x), **how))
    return add(u, M(norm("mlp_norm", u)))


def post(x):
    u = N("attention_norm", add(x, A(x)))
    return N("mlp_norm", add(u, M(u)))


def post_single(x):
    u = add(x, A(x))
    return N("norm", add(u, M(u)))


def sandwich(x):
    u = add(x, N("attention_output_norm", A(N("attention_norm", x))))
    return add(u, N("mlp_output_norm", M(N("mlp_norm", u))))


def olmo2(x):
    u = add(x, R("attention_norm", A(x, qk="full")))
    return add(u, R("mlp_norm", M(u)))


def normformer(x):
    gamma = [parameter("head_scale", c // (WIDTH // HEADS)) for c in range(WIDTH)]
    scaled = times(gamma, heads(N("attention_norm", x)))
    u = add(x, N("attention_output_norm", linear("attention_output", scaled, WIDTH)))
    return add(u, linear("mlp_out", N("mlp_hidden_norm", hidden(N("mlp_norm", u))), WIDTH))


def deepnorm(x):
    alpha = (2 * LAYERS) ** 0.25
    u = N("attention_norm", add(times(alpha, x), A(x)))
    return N("mlp_norm", add(times(alpha, u), M(u)))


def admin(x):
    u = N("attention_norm", add(times(vector("attention_omega", WIDTH), x), A(x)))
    return N("mlp_norm", add(times(vector("mlp_omega", WIDTH), u), M(u)))


def rezero(x):
    a = parameter("rezero_scale", 0)
    u = add(x, times(a, A(x)))
    return add(u, times(a, M(u)))


def layerscale(x):
    u = add(x, times(vector("attention_lambda", WIDTH), A(N("attention_norm", x))))
    return add(u, times(vector("mlp_lambda", WIDTH), M(N("mlp_norm", u))))


def b2t(x):
    u = N("attention_norm", add(x, A(x)))
    return N("mlp_norm", add(x, u, M(u)))


def residual_dual_stack(x):
    """One block and the end of the model: x + N(d)."""
    a = A(x)
    u = N("attention_norm", add(x, a))
    m = M(u)
    return add(N("mlp_norm", add(u, m)), N("dual_norm", add(x, a, m)))


def hybrid(x):
    n = R("mlp_norm", add(x, A(x, qk="head", values=True)))
    return add(n, M(n))


def lns(x):
    damping = 1 / math.sqrt(2)
    u = add(x, A(times(damping, N("attention_norm", x))))
    return add(u, M(times(damping, N("mlp_norm", u))))


def none(x):
    u = add(x, A(x))
    return add(u, M(u))


def main():
    x = [[((3 * i * i + 5 * i) % 17 - 8) / 8 for i in range(t * WIDTH, (t + 1) * WIDTH)]
         for t in range(TIME)]
    outputs = [
        ("pre", pre(x)), ("post", post(x)), ("post-single", post_single(x)),
        ("sandwich", sandwich(x)), ("olmo2", olmo2(x)), ("normformer", normformer(x)),
        ("deepnorm", deepnorm(x)), ("admin", admin(x)), ("rezero", rezero(x)),
        ("layerscale", layerscale(x)), ("b2t", b2t(x)), ("residual-dual", post(x)),
        ("residual-dual stack", residual_dual_stack(x)),
        ("mix first", post(x)), ("mix", pre(x)), ("hybrid", hybrid(x)),
        ("hybrid-star first", pre(x, qk="head", values=True)), ("hybrid-star", hybrid(x)),
        ("lns", lns(x)), ("none", none(x)),
    ]
    for name, rows in outputs:
        values = ", ".join(f"{v:.12f}" for row in rows for v in row)
        print(f'    {{"{name}", {{{values}}}}},')


if __name__ == "__main__":
    main()
