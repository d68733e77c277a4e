"""How long a device is idle between two runs: scripted runs of two seconds each on one slot.

    python tests/bench/idle_gap.py --bin build/release/bin [--runs 20] [--seconds 2] [--rounds 4]

The gap is the time from the end of one trainer's process (its pidfd becomes readable) to when the
next one, child of its shepherd, is seen in the folder of its attempt; both are looked for about every
millisecond. Two servers take turns, one that keeps a trainer warm and one that keeps none, and so does
what they are compared with: the least that such a handover can be on this machine at this time, which
is the end noted in a file and its folder, two commits of 8 KiB, each on the disk before the next is
begun, and a process that starts another. Ratios are of the medians of a round.
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
    """When processes, one after the other, began and ended, by the monotonic clock."""

    def __init__(self):
        self.starts, self.ends = [], []

    def watch(self, begun, count):
        """Until so many have come and gone; begun() has the numbers of those that are there."""
        poll, seen, open_files = select.poll(), set(), {}
        while len(self.ends) < count:
            for pidfd, _ in poll.poll(0.5):
                self.ends.append(time.monotonic())
                poll.unregister(pidfd)
                open_files.pop(pidfd).close()
            for process in set(begun()) - seen:
                self.starts.append(time.monotonic())
                seen.add(process)
                file = os.fdopen(os.pidfd_open(process))
                open_files[file.fileno()] = file
                poll.register(file.fileno(), select.POLLIN)

    def gaps(self):
        """Milliseconds between the end of each and the start of the next."""
        return [(start - end) * 1e3 for end, start in zip(self.ends, self.starts[1:])]


class Least:
    """The peer: what cannot be left out of a handover, and nothing else."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        self.log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.gaps, self.medians = [], []

    def round(self, count, seconds):
        del seconds  # nothing waits here
        gaps = [self.gap() for _ in range(4 * count)]
        self.gaps += gaps
        self.medians.append(statistics.median(gaps))

    def gap(self):
        began = time.monotonic()
        self.note_end()
        for _ in range(2):
            os.write(self.log, bytes(8192))
            os.fdatasync(self.log)
        # The shell has started the other when that one has said so.
        with subprocess.Popen(["/bin/sh", "-c", "/bin/echo started; :"],
                              stdout=subprocess.PIPE) as process:
            process.stdout.read(1)
            return (time.monotonic() - began) * 1e3

    def note_end(self):
        with open(self.folder / "end.tmp", "wb") as file:
            file.write(bytes(100))
            file.flush()
            os.fsync(file.fileno())
        os.rename(self.folder / "end.tmp", self.folder / "end")
        directory = os.open(self.folder, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)


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
        lives = Lives()
        lives.watch(self.begun, len(runs))
        while self.server.request("GET", f"/api/v1/runs/{runs[-1]['id']}")["state"] != (
                "STATE_SUCCEEDED"):
            time.sleep(0.01)
        self.gaps += lives.gaps()
        self.medians.append(statistics.median(lives.gaps()))

    def begun(self):
        """Trainers in the folder of an attempt. One that is warm waits in another."""
        attempts = str((self.data / "attempts").resolve())
        for shepherd in children(self.server.process.pid):
            for trainer in children(shepherd)[:1]:
                try:
                    if os.readlink(f"/proc/{trainer}/cwd").startswith(attempts):
                        yield trainer
                except FileNotFoundError:  # it has just ended
                    pass

    def report(self, name, least):
        ratios = [own / other for own, other in zip(self.medians, least.medians)]
        print(f"idle between runs, {name}: median {statistics.median(self.gaps):.1f} ms, most "
              f"{max(self.gaps):.1f} ms of {len(self.gaps)} (wanted: below {TARGET} ms); "
              f"{statistics.median(ratios):.1f} times the least ({min(ratios):.1f} to "
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
    contestants = {}
    with tempfile.TemporaryDirectory(prefix="normlab-idle-") as folder, \
            contextlib.ExitStack() as stack:
        for name, warm in (("a trainer kept warm", 1), ("none kept warm", 0)):
            data = pathlib.Path(folder) / str(warm)
            contestants[name] = Contestant(arguments.bin.resolve(), data, warm)
            stack.callback(contestants[name].server.stop)
        least = Least(pathlib.Path(folder) / "least")
        for number in range(arguments.rounds):
            order = [*contestants.values(), least]
            for contestant in order if number % 2 == 0 else reversed(order):
                contestant.round(each, arguments.seconds)
    good = [contestant.report(name, least) for name, contestant in contestants.items()]
    print(f"the least that it can be: median {statistics.median(least.gaps):.1f} ms, medians of a "
          f"round {min(least.medians):.1f} to {max(least.medians):.1f} ms")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
