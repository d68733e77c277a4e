"""How long the article's three runs take: the JAX script against the engine, on this machine.

    .venv-test/bin/python tests/bench/article_vs_jax.py --engine build/bin/normlab-train-csv

JAX runs its three configurations in order, as a user's script would, with all cores to itself and
compilation included. The engine runs two single-threaded processes at a time, then the third, as the
scheduler does on two cores. Both print wall seconds and user seconds; the latter stay meaningful when
somebody else is using the machine.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

RUNS = [
    ["--placement=pre"],
    ["--placement=post"],
    ["--placement=post", "--warmup_steps=120"],
]


def measured(label, work):
    """Runs `work` and prints the wall time and the children's processor time it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    work()
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    system = after.ru_stime - before.ru_stime
    print(f"{label}: {wall:.1f} s wall, {user:.1f} s user, {system:.1f} s system", flush=True)
    return wall


def run_engine(engine, *runs):
    """Starts the runs at once and waits for all."""
    environment = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
    processes = [
        subprocess.Popen([engine, "--quiet", f"--run={' '.join(run)}", *run], env=environment)
        for run in runs
    ]
    for process in processes:
        if process.wait() != 0:
            sys.exit(f"{process.args} failed with {process.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", required=True, help="the normlab-train-csv program")
    parser.add_argument("--skip-jax", action="store_true")
    arguments = parser.parse_args()
    engine = arguments.engine

    measured("engine, one process", lambda: run_engine(engine, RUNS[0]))

    def as_scheduled():
        run_engine(engine, RUNS[0], RUNS[1])
        run_engine(engine, RUNS[2])

    ours = measured("engine, three runs, two at a time", as_scheduled)
    if arguments.skip_jax:
        return
    script = Path(__file__).parent.parent / "parity" / "article_jax.py"
    command = [sys.executable, str(script), "--output", os.devnull]
    theirs = measured("JAX, three runs", lambda: subprocess.run(command, check=True))
    print(f"the engine takes {ours / theirs:.2f} of JAX's time")


if __name__ == "__main__":
    main()
