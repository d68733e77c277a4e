"""How long a device is idle between two runs: scripted runs of two seconds each on one slot.

    python tests/bench/idle_gap.py --bin build/release/bin [--runs 20] [--seconds 2] [--rounds 4]

The gap is the time from the end of one trainer's process (its pidfd becomes readable) to when the
next one, child of its shepherd, is seen in the folder of its attempt. It is looked for every 0.5 ms,
so the true gap is a little shorter. Two servers take turns, one that keeps a trainer warm and one that
keeps none, and so does their peer, the least that a handover can take here: one program started after
another has been waited for. Ratios are of the rounds' medians, each to the peer's of its round.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TARGET = 20  # milliseconds, median
SPEC = {"layers": 1, "dModel": 8, "heads": 2, "vocabSize": 8, "sequenceLength": 4, "batchSize": 2,
        "checkpointSeconds": 0}
STEPS_PER_SECOND = 100


class Server:
    def __init__(self, programs, data, warm):
        environment = {**os.environ, "NORMLAB_FAKE_ENGINE": f"steps_per_second={STEPS_PER_SECOND}"}
        endpoint = data / "endpoint.json"
        self.process = subprocess.Popen(
            [programs / "normlabd", "--data-dir", data, "--http", "127.0.0.1:0", "--grpc",
             "127.0.0.1:0", "--log-level", "error", "--cpu-slots", "1", "--trainer",
             programs / "normlab-fake-trainer", "--warm-trainers", str(warm)], stdin=subprocess.DEVNULL, env=environment)
        while not endpoint.exists():
            if self.process.poll() is not None:
                raise SystemExit(f"normlabd ended with {self.process.returncode}")
            time.sleep(0.001)
        self.endpoint = json.loads(endpoint.read_text())

    def request(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.endpoint["http"], timeout=30)
        connection.request(method, path, json.dumps(body) if body else None,
                           {"Authorization": f"Bearer {self.endpoint['token']}"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        if response.status != 200:
            raise SystemExit(f"{method} {path}: {answer}")
        return answer

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def children(pid):
    """Processes whose parent is one of the threads of `pid`."""
    found = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += map(int, file.read().split())
    except FileNotFoundError:  # it, or a thread of it, has ended
        pass
    return found


class Lives:
    """When the trainers of a server began and ended, in their order, by the monotonic clock."""

    def __init__(self, server, data):
        self.server = server
        self.attempts = str((data / "attempts").resolve())
        self.starts, self.ends = [], []
        self.watchers = []

    def watch(self, count):
        seen = set()
        while len(self.starts) < count:
            for shepherd in children(self.server):
                if shepherd in seen:
                    continue
                for trainer in children(shepherd)[:1]:
                    if self.has_begun(trainer):
                        self.starts.append(time.monotonic())
                        seen.add(shepherd)
                        self.watch_end(trainer)
            time.sleep(0.0005)
        for watcher in self.watchers:
            watcher.join()

    def has_begun(self, trainer):
        """One that is warm waits in another folder."""
        try:
            return os.readlink(f"/proc/{trainer}/cwd").startswith(self.attempts)
        except FileNotFoundError:
            return False

    def watch_end(self, trainer):
        pidfd = os.pidfd_open(trainer)
        self.ends.append(None)
        watcher = threading.Thread(target=self.wait_for_end, args=(len(self.ends) - 1, pidfd))
        watcher.start()
        self.watchers.append(watcher)

    def wait_for_end(self, index, pidfd):
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.poll()
        self.ends[index] = time.monotonic()
        os.close(pidfd)

    def gaps(self):
        """Milliseconds between the end of each and the start of the next."""
        return [(start - end) * 1e3 for end, start in zip(self.ends, self.starts[1:])]


def bare_gap(count=20):
    """Milliseconds from the end of a process to the start of the next in the shortest of loops."""
    gaps, ended = [], None
    for _ in range(count):
        process = subprocess.Popen(["/bin/true"])
        if ended is not None:
            gaps.append((time.monotonic() - ended) * 1e3)
        process.wait()
        ended = time.monotonic()
    return statistics.median(gaps)


class Contestant:
    """A server, whose gaps are measured a round at a time."""

    def __init__(self, programs, data, warm):
        self.data = data
        self.server = Server(programs, data, warm)
        self.gaps = []     # of all rounds
        self.medians = []  # of each

    def round(self, count, seconds):
        spec = {**SPEC, "steps": int(seconds * STEPS_PER_SECOND)}
        runs = [self.server.request("POST", "/api/v1/runs", {"displayName": f"run {i}", "spec": spec})
                for i in range(count)]
        lives = Lives(self.server.process.pid, self.data)
        lives.watch(len(runs))
        while self.server.request("GET", f"/api/v1/runs/{runs[-1]['id']}")["state"] != (
                "STATE_SUCCEEDED"):
            time.sleep(0.01)
        self.gaps += lives.gaps()
        self.medians.append(statistics.median(lives.gaps()))

    def report(self, name, bare):
        ratios = [own / least for own, least in zip(self.medians, bare)]
        print(f"idle between runs, {name}: median {statistics.median(self.gaps):.1f} ms, most "
              f"{max(self.gaps):.1f} ms of {len(self.gaps)} (wanted: below {TARGET} ms); "
              f"{statistics.median(ratios):.1f} times a bare spawn ({min(ratios):.1f} to "
              f"{max(ratios):.1f} in {len(ratios)} rounds)")
        return statistics.median(self.gaps) < TARGET


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=20, help="of each server, all rounds together")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=4)
    arguments = parser.parse_args()
    each = max(2, arguments.runs // arguments.rounds)
    bare, contestants = [], {}
    with tempfile.TemporaryDirectory(prefix="normlab-idle-") as folder, \
            contextlib.ExitStack() as stack:
        for name, warm in (("a trainer kept warm", 1), ("none kept warm", 0)):
            data = pathlib.Path(folder) / str(warm)
            contestants[name] = Contestant(arguments.bin.resolve(), data, warm)
            stack.callback(contestants[name].server.stop)
        for number in range(arguments.rounds):
            bare.append(bare_gap())
            order = list(contestants.values())
            for contestant in order if number % 2 == 0 else reversed(order):
                contestant.round(each, arguments.seconds)
    good = [contestant.report(name, bare) for name, contestant in contestants.items()]
    print(f"a bare spawn after a wait: median {statistics.median(bare):.1f} ms "
          f"({min(bare):.1f} to {max(bare):.1f} in {len(bare)} rounds)")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
