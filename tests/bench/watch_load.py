"""How long a point takes from its trainer to each of many watchers, and what watchers cost a run.

    python watch_load.py --bin build/release/bin [--seconds N] [--crowds N] [--rounds N]

Starts real servers on loopback: with the scripted trainer at 50 steps a second for the crowd of
watchers (watch_load.cc), with the real one for the step time with and without watchers. With
--stalled N a second crowd watches beside N readers that take nothing, and the two take turns. Times
are medians over a crowd's turns, since a machine may be a third slower minutes later; what was lost
or doubled, and memory, counts in each. Exits with 1 when a target is missed.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

TARGETS = ("targets: median < 20 ms, p99 < 100 ms, nothing lost or doubled, server < 200 MiB, no "
           "read of the database beyond 1 s")
RATE, SETTLE = 50, 8    # steps a second; seconds before latencies are counted
STALLED_COST = 1.5      # times the median without readers that take nothing
MOST_P99 = 100          # milliseconds
MOST_MEDIAN = 20
MOST_MIB = 200


def load_harness(bin_folder):
    os.environ["NORMLAB_BIN"] = str(bin_folder)
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
    import harness
    return harness


def crowd(harness, arguments, folder, stalled):
    """The report of one crowd of watchers."""
    os.environ["NORMLAB_FAKE_ENGINE"] = f"steps_per_second={RATE},value=steady"
    server = harness.Server(
        folder, "--trainer", harness.BIN / "normlab-fake-trainer", *arguments.server)
    server.start()
    try:
        steps = RATE * (SETTLE + arguments.seconds)
        run = server.create("crowd", {**harness.TINY, "steps": steps})
        endpoint = server.endpoint
        address = f"unix:{endpoint['socket']}" if arguments.unix else endpoint["grpc"]
        answer = subprocess.run(
            [harness.BIN / "watch_load", "--grpc", address, "--http", endpoint["http"],
             "--token", endpoint["token"], "--run", run, "--steps", str(steps),
             "--first-step", str(RATE * SETTLE), "--server-pid", str(endpoint["pid"]),
             "--watchers", str(arguments.watchers), "--connections", str(arguments.connections),
             "--streams", str(arguments.streams), "--stalled", str(stalled),
             "--seconds", str(SETTLE + 3 * arguments.seconds + 60)],
            stdout=subprocess.PIPE, text=True)
        report = json.loads(answer.stdout)
        report["slow_reads"] = server.metric("normlab_slow_reads_total")
        report["wanted"] = {face: readers * (steps - RATE * SETTLE + 1) for face, readers
                            in (("grpc", arguments.watchers), ("http", arguments.streams))}
        return report
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


def unseen(report):
    """What the watchers of a crowd have not seen as they should."""
    wrong = [] if report["ended"] else ["some watchers did not see the end"]
    for face, wanted in report["wanted"].items():
        part = report[face]
        if part["points"] != wanted:
            wrong.append(f"{face}: {part['points']} points seen and not {wanted}")
        if part["lost"] or part["doubled"] or part["faulty"]:
            wrong.append(f"{face}: {part['lost']} points lost, {part['doubled']} doubled, "
                         f"{part['faulty']} watchers broken")
    return wrong


def typical(reports, face, figure):
    """The median over the turns of a crowd."""
    return statistics.median(report[face][figure] for report in reports)


def faults_of(reports, alone=None):
    """What is wrong with the turns of a crowd. `alone` are the reports of one without stalled
    readers, by which the median is then measured."""
    wrong = []
    for face in (face for face, wanted in reports[0]["wanted"].items() if wanted):
        most = MOST_MEDIAN if alone is None else STALLED_COST * typical(alone, face, "median_ms")
        median, p99 = (typical(reports, face, figure) for figure in ("median_ms", "p99_ms"))
        if median >= most:
            wrong.append(f"{face}: median {median:.1f} ms of at most {most:.1f}")
        if p99 >= MOST_P99:
            wrong.append(f"{face}: p99 {p99:.1f} ms of at most {MOST_P99}")
    for report in reports:
        wrong += unseen(report)
        if report["server_mib"] >= MOST_MIB:
            wrong.append(f"server: {report['server_mib']:.0f} MiB of at most {MOST_MIB}")
        if report["slow_reads"]:
            wrong.append(f"{report['slow_reads']:.0f} reads of the database took more than a second")
    return wrong


def take_turns(harness, arguments, folder):
    """(alone, beside): the reports of either crowd, each printed as it comes."""
    alone, beside = [], []
    for turn in range(arguments.crowds):
        crowds = [(alone, 0)]
        if arguments.stalled > 0:
            crowds.append((beside, arguments.stalled))
        for reports, stalled in crowds if turn % 2 == 0 else reversed(crowds):
            print(f"\nturn {turn + 1} of {arguments.crowds}" +
                  (f", beside {stalled} readers that take nothing" if stalled else ""))
            reports.append(crowd(harness, arguments, folder / f"{turn}-{stalled}", stalled))
            print_crowd(reports[-1])
            sys.stdout.flush()
    return alone, beside


def print_medians(name, reports):
    figures = [f"{face} {typical(reports, face, 'median_ms'):.1f} / "
               f"{typical(reports, face, 'p99_ms'):.1f} ms" for face in ("grpc", "http")]
    print(f"{name}, medians over {len(reports)} turns of median / p99: {', '.join(figures)}")


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
            seen = json.loads(crowd.communicate(timeout=60)[0])
            seen["wanted"] = {"grpc": watchers * spec["steps"]}
            assert not unseen(seen), unseen(seen)
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
    parser.add_argument("--crowds", type=int, default=3, help="turns of each crowd")
    parser.add_argument("--rounds", type=int, default=15, help="of the step times; 0: none")
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
        alone, beside = take_turns(harness, arguments, folder)
        print()
        print_medians("alone", alone)
        wrong = faults_of(alone)
        if beside:
            print_medians(f"beside the {arguments.stalled} (median at most {STALLED_COST} times that)",
                          beside)
            wrong += [f"beside stalled readers: {fault}" for fault in faults_of(beside, alone)]
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
