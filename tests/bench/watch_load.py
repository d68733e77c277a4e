"""How long a point takes from its trainer to each of many watchers, and what watchers cost a run.

    python watch_load.py --bin build/release/bin [--seconds N] [--rounds N]

Starts real servers on loopback: with the scripted trainer at 50 steps a second for the crowd of
watchers (watch_load.cc), with the real one for the step time with and without watchers. Exits with
1 when a target is missed.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

TARGETS = "targets: median < 20 ms, p99 < 100 ms, nothing lost or doubled, server < 200 MiB"


def load_harness(bin_folder):
    os.environ["NORMLAB_BIN"] = str(bin_folder)
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
    import harness
    return harness


def crowd(harness, arguments, folder):
    """The report of one crowd of watchers."""
    rate, settle = 50, 8
    os.environ["NORMLAB_FAKE_ENGINE"] = f"steps_per_second={rate},value=steady"
    server = harness.Server(
        folder / "crowd", "--trainer", harness.BIN / "normlab-fake-trainer", *arguments.server)
    server.start()
    try:
        steps = rate * (settle + arguments.seconds)
        run = server.create("crowd", {**harness.TINY, "steps": steps})
        endpoint = server.endpoint
        address = f"unix:{endpoint['socket']}" if arguments.unix else endpoint["grpc"]
        answer = subprocess.run(
            [harness.BIN / "watch_load", "--grpc", address, "--http", endpoint["http"],
             "--token", endpoint["token"], "--run", run, "--steps", str(steps),
             "--first-step", str(rate * settle), "--server-pid", str(endpoint["pid"]),
             "--watchers", str(arguments.watchers), "--connections", str(arguments.connections),
             "--streams", str(arguments.streams), "--stalled", str(arguments.stalled),
             "--seconds", str(settle + 3 * arguments.seconds + 60)],
            stdout=subprocess.PIPE, text=True)
        return json.loads(answer.stdout)
    finally:
        server.stop()
        server.log.close()


def print_crowd(report):
    print("| watchers | points | median ms | p99 ms | max ms | messages | lost | doubled |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for face in ("grpc", "http"):
        part = report[face]
        print(f"| {face} | {part['points']} | {part['median_ms']:.1f} | {part['p99_ms']:.1f} | "
              f"{part['max_ms']:.1f} | {part['messages']} | {part['lost']} | {part['doubled']} |")
    print(f"\n{report['seconds']:.0f} s; processor: server {report['server_cpu']:.2f} cores, "
          f"generator {report['generator_cpu']:.2f}; server {report['server_mib']:.0f} MiB at most")
    for face in ("grpc", "http"):
        if report[face]["faulty"]:
            print(f"{report[face]['faulty']} {face} watchers broke: {report[face]['faults']}")


def faults_of(report):
    wrong = [] if report["ended"] else ["some watchers did not see the end"]
    for face in ("grpc", "http"):
        part = report[face]
        if part["points"] == 0:
            continue
        if part["median_ms"] >= 20:
            wrong.append(f"{face}: median {part['median_ms']:.1f} ms")
        if part["p99_ms"] >= 100:
            wrong.append(f"{face}: p99 {part['p99_ms']:.1f} ms")
        if part["lost"] or part["doubled"] or part["faulty"]:
            wrong.append(f"{face}: {part['lost']} points lost, {part['doubled']} doubled, "
                         f"{part['faulty']} watchers broken")
    if report["server_mib"] >= 200:
        wrong.append(f"server: {report['server_mib']:.0f} MiB")
    return wrong


def median_step(harness, server, name, watchers):
    """The median step time of one run of the real trainer, in milliseconds."""
    # A step of some milliseconds, as small as anybody would train.
    spec = {"layers": 4, "dModel": 64, "heads": 4, "vocabSize": 64, "sequenceLength": 32,
            "batchSize": 8, "steps": 600, "threads": 1}
    run = server.create(name, spec)
    endpoint = server.endpoint
    crowd = watchers and subprocess.Popen(
        [harness.BIN / "watch_load", "--grpc", endpoint["grpc"], "--http", endpoint["http"],
         "--token", endpoint["token"], "--run", run, "--steps", str(spec["steps"]),
         "--watchers", str(watchers), "--connections", str(watchers), "--streams", "0"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        ended = server.wait_for_state(run, *harness.TERMINAL, timeout=600)
        assert ended["state"] == "STATE_SUCCEEDED", ended["endReason"]
    finally:
        if crowd:
            seen = json.loads(crowd.communicate(timeout=60)[0])["grpc"]
            assert seen["lost"] == 0 and seen["doubled"] == 0, seen
    times = server.series(run, "step_milliseconds")
    return statistics.median(value for step, value in times.items() if step > 100)


def step_times(harness, arguments, folder):
    """(without, with 20 watchers): medians over rounds that take turns."""
    os.environ.pop("NORMLAB_FAKE_ENGINE", None)
    server = harness.Server(folder / "steps", *arguments.server).start()
    try:
        without, watched = [], []
        for number in range(arguments.rounds):
            order = [(without, 0), (watched, 20)]
            for times, watchers in order if number % 2 == 0 else reversed(order):
                times.append(median_step(harness, server, f"round {number} {watchers}", watchers))
        return without, watched
    finally:
        server.stop()
        server.log.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5, help="of the step times; 0: none")
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--streams", type=int, default=500)
    parser.add_argument("--stalled", type=int, default=0)
    parser.add_argument("--unix", action="store_true", help="gRPC over the unix socket")
    parser.add_argument("--server", action="append", default=[], help="an option of normlabd")
    arguments = parser.parse_args()
    harness = load_harness(arguments.bin.resolve())
    with tempfile.TemporaryDirectory(prefix="normlab-streams-") as name:
        folder = pathlib.Path(name)
        report = crowd(harness, arguments, folder)
        print_crowd(report)
        wrong = faults_of(report)
        if arguments.rounds > 0:
            without, watched = step_times(harness, arguments, folder)
            ratio = statistics.median(watched) / statistics.median(without)
            print(f"\nmedian step: {statistics.median(without):.3f} ms without watchers, "
                  f"{statistics.median(watched):.3f} ms with 20: {ratio:.3f}")
            if ratio > 1.02:
                wrong.append(f"20 watchers make a step {100 * (ratio - 1):.1f} % longer")
    print(f"\n{TARGETS}: " + ("met" if not wrong else "MISSED: " + "; ".join(wrong)))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
