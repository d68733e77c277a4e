"""How long a device is idle between two runs: 20 scripted runs of two seconds each on one slot.

    python tests/bench/idle_gap.py --bin build/release/bin [--runs 20] [--seconds 2]

The gap is the time from the end of one trainer's process (its pidfd becomes readable) to when the
next one was seen as a child of its shepherd. It is looked for every 0.5 ms, so the true gap is a
little shorter. The peer, in the same run, is the
least that a handover can take here: one program started after another has been waited for.
"""

import argparse
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
    def __init__(self, programs, data):
        environment = {**os.environ, "NORMLAB_FAKE_ENGINE": f"steps_per_second={STEPS_PER_SECOND}"}
        endpoint = data / "endpoint.json"
        self.process = subprocess.Popen(
            [programs / "normlabd", "--data-dir", data, "--http", "127.0.0.1:0", "--grpc",
             "127.0.0.1:0", "--log-level", "error", "--cpu-slots", "1", "--trainer",
             programs / "normlab-fake-trainer"], stdin=subprocess.DEVNULL, env=environment)
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

    def __init__(self, server):
        self.server = server
        self.starts, self.ends = [], []
        self.watchers = []

    def watch(self, count):
        seen = set()
        while len(self.starts) < count:
            for shepherd in children(self.server):
                if shepherd in seen:
                    continue
                for trainer in children(shepherd)[:1]:
                    self.starts.append(time.monotonic())
                    seen.add(shepherd)
                    self.watch_end(trainer)
            time.sleep(0.0005)
        for watcher in self.watchers:
            watcher.join()

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


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="normlab-idle-") as folder:
        server = Server(arguments.bin.resolve(), pathlib.Path(folder) / "data")
        try:
            spec = {**SPEC, "steps": int(arguments.seconds * STEPS_PER_SECOND)}
            runs = [server.request("POST", "/api/v1/runs", {"displayName": f"run {i}", "spec": spec})
                    for i in range(arguments.runs)]
            lives = Lives(server.process.pid)
            lives.watch(len(runs))
            while server.request("GET", f"/api/v1/runs/{runs[-1]['id']}")["state"] != (
                    "STATE_SUCCEEDED"):
                time.sleep(0.01)
        finally:
            server.stop()
    gaps, least = lives.gaps(), bare_gap()
    median = statistics.median(gaps)
    print(f"idle between runs: median {median:.1f} ms, most {max(gaps):.1f} ms of {len(gaps)} "
          f"(wanted: below {TARGET} ms); a bare spawn after a wait: {least:.1f} ms")
    return 0 if median < TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
