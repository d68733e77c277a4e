"""Event streams of a real server: over its restart, beside readers that take nothing, to their ends."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import grpc
from harness import BIN, TINY, Server, wait_for


def events_of(lines):
    """Each event as (name, data, token)."""
    name = data = token = None
    for line in lines:
        key, _, value = line.decode().rstrip("\n").partition(": ")
        if key == "id":
            token = value
        elif key == "event":
            name = value
        elif key == "data":
            data = json.loads(value)
        elif not key and name:
            yield name, data, token
            name = token = None


def read_events(server, query, seen):
    """One stream, to its end: appends its events to `seen`."""
    endpoint = server.endpoint
    request = urllib.request.Request(
        f"http://{endpoint['http']}/api/v1/events?{query}",
        headers={"Authorization": f"Bearer {endpoint['token']}"})
    with urllib.request.urlopen(request, timeout=60) as response:
        seen.extend(events_of(response))


def steps_of(events):
    return [step for name, data, _ in events if name == "points"
            for step in data["columns"]["loss"]["steps"]]


def told_steps(lines):
    """Of what `normlab watch --json` prints."""
    return [step for event in map(json.loads, lines) if event["event"] == "points"
            for step in event["columns"]["loss"]["steps"]]


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
        return steps_of(self.events)


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

    def open_stream(self, query, buffer=4096):
        """The socket of an event stream, of which nothing has been read."""
        endpoint = self.server.endpoint
        host, port = endpoint["http"].split(":")
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        reader.connect((host, int(port)))
        reader.sendall(f"GET /api/v1/events?{query} HTTP/1.1\r\n"
                       f"Host: {endpoint['http']}\r\n"
                       f"Authorization: Bearer {endpoint['token']}\r\n\r\n".encode())
        self.addCleanup(reader.close)
        return reader

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
        self.assertEqual(told_steps(output.splitlines()), list(range(1, steps + 1)))


class StalledReaders(Streams):
    options = ("--stall-timeout", "1.5")
    engine = "steps_per_second=20000,value=step"

    def resident_mib(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines()
                    if line.startswith("VmRSS:")) / 1024

    def test_they_cost_little_are_let_go_counted_and_told_and_slow_nobody(self):
        run = self.server.create("long", {**TINY, "steps": 100_000})
        self.server.wait_for_state(run, "SUCCEEDED")
        before = self.resident_mib()
        readers = [self.open_stream(f"runs={run}") for _ in range(100)]
        calls = self.stalled_calls(run, 100)
        wait_for(lambda: self.metric("normlab_watchers") >= 200, "the readers to be watchers")
        start = time.monotonic()
        seen = []
        read_events(self.server, f"runs={run}", seen)
        beside = time.monotonic() - start
        self.assertEqual(len(steps_of(seen)), 100_000)
        self.assertLess(beside, 30)
        most = self.resident_mib()
        wait_for(lambda: self.metric("normlab_stalled_watchers_total") == 200,
                 "all of them to be let go")
        wait_for(lambda: self.metric("normlab_watchers") == 0, "nobody to watch")
        print(f"200 stalled readers: {most - before:.0f} MiB, {before:.0f} before; "
              f"a live one read 100,000 steps beside them in {beside:.1f} s")
        self.assertLess(most - before, 120)
        self.assert_told(readers[0], calls[0])
        self.assertEqual(self.metric("normlab_slow_reads_total"), 0)

    def stalled_calls(self, run, count):
        """Calls of WatchRuns whose messages nobody takes."""
        endpoint = self.server.endpoint
        request = b"\x0a" + bytes([len(run)]) + run.encode()  # runs, the first field
        calls = []
        for number in range(count):
            if number % 10 == 0:  # ten of each connection
                channel = grpc.insecure_channel(
                    endpoint["grpc"], options=[("grpc.use_local_subchannel_pool", 1),
                                               ("grpc.http2.bdp_probe", 0)])
                self.addCleanup(channel.close)
                watch = channel.unary_stream("/normlab.v1.RunService/WatchRuns",
                                             lambda b: b, lambda b: b)
            calls.append(watch(request, metadata=[("authorization",
                                                   f"Bearer {endpoint['token']}")]))
        return calls

    def assert_told(self, reader, call):
        """Who reads again finds whole events, and then why there are no more."""
        response = http.client.HTTPResponse(reader)
        response.begin()
        *events, (name, data, _) = events_of(response)
        self.assertEqual((name, data["error"]["status"]), ("error", "ABORTED"))
        steps = steps_of(events)
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        self.assertLess(len(steps), 100_000)
        with self.assertRaises(grpc.RpcError) as raised:
            for _ in call:
                pass
        self.assertEqual(raised.exception.code(), grpc.StatusCode.ABORTED)
        self.assertEqual(raised.exception.details().split(";")[0],
                         data["error"]["message"].split(";")[0])

    def test_one_that_takes_a_byte_now_and_then_is_let_go_too(self):
        run = self.server.create("long", {**TINY, "steps": 100_000})
        self.server.wait_for_state(run, "SUCCEEDED")
        reader = self.open_stream(f"runs={run}")
        wait_for(lambda: reader.recv(1) and self.metric("normlab_stalled_watchers_total") == 1,
                 "it to be let go")


class FallenBehind(Streams):
    """Live streams whose readers sleep for longer than the server remembers."""

    options = ("--stall-timeout", "600")
    engine = "steps_per_second=2000,value=step,series=20"
    REMEMBERED = 2 << 20  # bytes of a run's latest events that a server keeps at hand
    IN_BUFFERS = 1 << 20  # bytes that wait in sockets, at most
    HELD = 20_000         # steps

    def test_a_page_and_a_command_line_miss_nothing(self):
        steps = 2 * self.HELD
        run = self.server.create("watched", {**TINY, "steps": steps})
        printed = pathlib.Path(self.folder.name, "printed")
        with open(printed, "wb") as file:
            lines = subprocess.Popen([BIN / "normlab", "--data-dir", self.server.data_dir, "watch",
                                      run, "--json"], stdout=file, stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, lines)
        response = http.client.HTTPResponse(self.open_stream(f"runs={run}", 1 << 16))
        response.begin()
        events = events_of(response)
        seen = []
        while len(steps_of(seen)) < 100:
            seen.append(next(events))
        wait_for(lambda: b'"points"' in printed.read_bytes(), "the command line to watch")

        lines.send_signal(signal.SIGSTOP)
        before = self.server.step(run)
        wait_for(lambda: self.server.step(run) > before + self.HELD, "many steps", timeout=300)
        lines.send_signal(signal.SIGCONT)

        at_hand = len(seen)
        seen += events
        missed = sum(len(json.dumps(data)) for name, data, _ in seen[at_hand:] if name == "points"
                     and data["columns"]["loss"]["steps"][-1] <= before + self.HELD)
        self.assertGreater(missed, self.REMEMBERED + self.IN_BUFFERS, "they fell behind")
        self.assertEqual(steps_of(seen), list(range(1, steps + 1)))
        self.assertEqual(seen[-1][0], "end")
        self.assertEqual(lines.wait(120), 0)
        self.assertEqual(told_steps(printed.read_text().splitlines()), list(range(1, steps + 1)))
        self.assertEqual(self.metric("normlab_stalled_watchers_total"), 0)
        self.assertEqual(self.metric("normlab_slow_reads_total"), 0)

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
            process.wait(30)


class LargeExperiment(Streams):
    """Thousands of runs in one commit: whoever reads them does so in pages."""

    options = ("--cpu-slots", "1")
    engine = "hang_at=1"
    RUNS = 2_000

    def test_no_reader_holds_the_database_for_long(self):
        running = self.server.create("earlier", {**TINY, "steps": 5})
        self.addCleanup(self.cancel, "runs", running)
        token = self.first_token()
        status, made = self.server.request("POST", "/api/v1/experiments", {
            "sweep": {"base": {**TINY, "steps": "5"},
                      "axes": [{"setting": "seed", "values": [str(n) for n in range(self.RUNS)]}]}})
        self.assertEqual(status, 200, made)
        self.addCleanup(self.cancel, "experiments", made["id"])  # first
        start = time.monotonic()
        read = self.server.get(f"/api/v1/experiments/{made['id']}")
        took = time.monotonic() - start
        ids = [run["id"] for run in made["runs"]]
        self.assertEqual([run["id"] for run in read["runs"]], ids)
        start = time.monotonic()
        self.read_until_told(token, set(ids))
        print(f"{self.RUNS} runs: read in {took:.1f} s, told to one who comes back in "
              f"{time.monotonic() - start:.1f} s")
        self.assertEqual(self.metric("normlab_slow_reads_total"), 0)

    def cancel(self, what, name):
        self.server.request("POST", f"/api/v1/{what}/{name}:cancel")
        if what == "runs":
            self.server.wait_for_state(name, "CANCELLED")

    def lobby(self, query=""):
        response = http.client.HTTPResponse(self.open_stream(f"all=true{query}", 1 << 20))
        response.begin()
        return events_of(response)

    def first_token(self):
        return next(token for _, _, token in self.lobby() if token)

    def read_until_told(self, token, missing):
        for name, data, _ in self.lobby(f"&resume={token}"):
            if name == "run":
                missing.discard(data["id"])
            if not missing:
                return
        self.fail(f"the stream ended and said nothing of {len(missing)} runs")


if __name__ == "__main__":
    unittest.main(verbosity=2)
