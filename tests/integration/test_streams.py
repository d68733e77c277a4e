"""Event streams of a real server: over its restart, beside readers that take nothing, to their ends."""

import json
import os
import pathlib
import signal
import socket
import tempfile
import threading
import time
import unittest
import urllib.request

from harness import BIN, TINY, Server, wait_for


def read_events(server, query, seen):
    """One stream, to its end: appends (name, data, token) to `seen`."""
    endpoint = server.endpoint
    request = urllib.request.Request(
        f"http://{endpoint['http']}/api/v1/events?{query}",
        headers={"Authorization": f"Bearer {endpoint['token']}"})
    name = data = token = None
    with urllib.request.urlopen(request, timeout=60) as response:
        for line in response:
            key, _, value = line.decode().rstrip("\n").partition(": ")
            if key == "id":
                token = value
            elif key == "event":
                name = value
            elif key == "data":
                data = json.loads(value)
            elif not key and name:
                seen.append((name, data, token))
                name = token = None


class Watcher(threading.Thread):
    """Follows a run over any number of streams, as a page does."""

    def __init__(self, server, run):
        super().__init__(daemon=True)
        self.server, self.run_id = server, run
        self.events, self.errors, self.connections = [], [], 0
        self.ended = False

    def run(self):
        token = ""
        while not self.ended:
            seen = []
            try:
                self.connections += 1
                read_events(self.server, f"runs={self.run_id}" + token, seen)
            except Exception as error:  # the server goes and comes; anything else fails the test
                self.errors.append(error)
                time.sleep(0.05)
            whole = max((i + 1 for i, event in enumerate(seen) if event[2]), default=0)
            if whole:
                token = f"&resume={seen[whole - 1][2]}"
            self.ended = any(name == "end" for name, _, _ in seen)
            # What came after the latest token comes again.
            self.events += seen if self.ended else seen[:whole]

    def steps(self):
        return [step for name, data, _ in self.events if name == "points"
                for step in data["columns"]["loss"]["steps"]]


class Streams(unittest.TestCase):
    options = ()
    engine = "steps_per_second=100,value=step"

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="normlab-streams-")
        os.environ["NORMLAB_FAKE_ENGINE"] = self.engine
        self.addCleanup(os.environ.pop, "NORMLAB_FAKE_ENGINE")
        self.server = Server(pathlib.Path(self.folder.name) / "data", "--trainer",
                             BIN / "normlab-fake-trainer", *self.options).start()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.server.log.close)
        self.addCleanup(self.server.stop)

    def metric(self, name):
        text = self.server.get("/metrics").decode()
        return next(float(line.split()[1]) for line in text.splitlines()
                    if line.startswith(name + " "))


class Restarts(Streams):
    def test_watchers_see_every_step_once_over_restarts_of_the_server(self):
        steps = 600
        run = self.server.create("watched", {**TINY, "steps": steps})
        watchers = [Watcher(self.server, run) for _ in range(8)]
        for watcher in watchers:
            watcher.start()
        lines = self.server.cli_start("watch", run, "--json")
        for number in (signal.SIGKILL, signal.SIGTERM):
            before = self.server.step(run)
            wait_for(lambda: self.server.step(run) > before + 100, "some steps")
            self.server.kill(number)
            self.server.start()
        for watcher in watchers:
            watcher.join(60)
            self.assertTrue(watcher.ended, watcher.errors[-3:])
            self.assertEqual(watcher.steps(), list(range(1, steps + 1)))
            self.assertGreaterEqual(watcher.connections, 3)
        output, errors = lines.communicate(timeout=60)
        self.assertEqual(lines.returncode, 0, errors)
        told = []
        for line in output.splitlines():
            event = json.loads(line)
            if event["event"] == "points":
                told += event["columns"]["loss"]["steps"]
        self.assertEqual(told, list(range(1, steps + 1)))


class StalledReaders(Streams):
    options = ("--stall-timeout", "1.5")
    engine = "steps_per_second=20000,value=step"

    def resident_mib(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines()
                    if line.startswith("VmRSS:")) / 1024

    def stall(self, run):
        """Asks for all of a run's history and takes nothing of it."""
        endpoint = self.server.endpoint
        host, port = endpoint["http"].split(":")
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect((host, int(port)))
        reader.sendall(f"GET /api/v1/events?runs={run} HTTP/1.1\r\nHost: {endpoint['http']}\r\n"
                       f"Authorization: Bearer {endpoint['token']}\r\n\r\n".encode())
        self.addCleanup(reader.close)
        return reader

    def test_they_cost_little_are_let_go_and_counted_and_slow_nobody(self):
        run = self.server.create("long", {**TINY, "steps": 100_000})
        self.server.wait_for_state(run, "SUCCEEDED")
        before = self.resident_mib()
        readers = [self.stall(run) for _ in range(200)]
        wait_for(lambda: self.metric("normlab_watchers") >= 200, "the readers to be watchers")
        start = time.monotonic()
        seen = []
        read_events(self.server, f"runs={run}", seen)
        beside = time.monotonic() - start
        self.assertEqual(sum(len(data["columns"]["loss"]["steps"])
                             for name, data, _ in seen if name == "points"), 100_000)
        self.assertLess(beside, 30)
        most = self.resident_mib()
        wait_for(lambda: self.metric("normlab_stalled_watchers_total") == len(readers),
                 "all of them to be let go")
        wait_for(lambda: self.metric("normlab_watchers") == 0, "nobody to watch")
        print(f"200 stalled readers: {most - before:.0f} MiB, {before:.0f} before; "
              f"a live one read 100,000 steps beside them in {beside:.1f} s")
        self.assertLess(most - before, 120)


if __name__ == "__main__":
    unittest.main(verbosity=2)
