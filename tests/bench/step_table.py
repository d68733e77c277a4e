"""Runs step_bench and prints a step's time as a ratio to its matrix products.

    python step_table.py build/release/bin/step_bench [--rounds N]

The products are timed by the library that the engine uses for them and by LibTorch. The bound is the
faster of the two for the weights, plus LibTorch's batched products for attention.
"""

import argparse
import json
import statistics
import subprocess


def medians(program, rounds):
    """{(model, what, threads): (median, lowest, highest)} in milliseconds."""
    output = subprocess.run(
        [
            program,
            f"--benchmark_repetitions={rounds}",
            "--benchmark_enable_random_interleaving=true",
            "--benchmark_format=json",
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    times = {}
    for run in json.loads(output)["benchmarks"]:
        if run["run_type"] != "iteration":
            continue
        model, what, threads = run["name"].split("/")[:3]
        times.setdefault((model, what, int(threads)), []).append(run["real_time"])
    return {key: (statistics.median(t), min(t), max(t)) for key, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    times = medians(arguments.program, arguments.rounds)

    print("| model | threads | step ms | weights, engine | weights, torch | attention | bound | "
          "step / bound | with diagnostics |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for model in ("article", "large"):
        for threads in (1, 2):
            step, engine, torch, attention, diagnosed = (
                times[model, what, threads][0]
                for what in ("step", "weights_engine", "weights_torch", "attention_torch",
                             "step_diagnosed")
            )
            bound = min(engine, torch) + attention
            print(f"| {model} | {threads} | {step:.1f} | {engine:.1f} | {torch:.1f} | "
                  f"{attention:.1f} | {bound:.1f} | {step / bound:.2f} | "
                  f"{100 * (diagnosed / step - 1):+.1f} % |")


if __name__ == "__main__":
    main()
