"""Watchers of a server under test, and the bad lines between them and it.

Each writes down every point that it is shown. What it was shown must be stored, whatever happens
afterwards; and over all its connections it must see each step of an attempt's series once, in order.
"""

import collections
import http.client
import json
import random
import socket
import subprocess
import threading
import time
import traceback

LONG_AGO = 30  # seconds without an event before a watcher looks again


class Shown:
    """Points shown to one watcher: {(run, attempt, series): {step: value}}."""

    def __init__(self):
        self.curves = collections.defaultdict(dict)
        self.faults = []
        self._latest = {}
        self._latest_at_token = {}

    def note_token(self):
        """What was shown so far will not be shown again."""
        self._latest_at_token = dict(self._latest)

    def back_to_token(self):
        """A new connection begins behind the latest token; a history without one begins again."""
        self._latest = dict(self._latest_at_token)

    def add(self, event):
        for series, column in event["columns"].items():
            key = (event["run"], event["attempt"], series)
            for step, value in zip(column["steps"], column["values"]):
                if step <= self._latest.get(key, 0):
                    self.faults.append(f"{key}: step {step} behind {self._latest[key]}")
                self._latest[key] = step
                self.curves[key][step] = float(value)


class Proxy:
    """A TCP line to wherever `target()` says, which can be slow and can be cut."""

    def __init__(self, target):
        self.target = target
        self.delay = 0.0
        self.accepted = 0   # connections so far,
        self.was_cut = 0    # and how many of them were cut
        self._sockets = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        with self._lock:
            sockets, self._sockets = self._sockets, set()
            self.was_cut += len(sockets) // 2
        for one in sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it had been cut already

    def close(self):
        """For good; those that are there are not counted as cut."""
        self._listener.close()
        was_cut = self.was_cut
        self.cut()
        self.was_cut = was_cut

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                host, port = self.target().rsplit(":", 1)
                far = socket.create_connection((host, int(port)), timeout=5)
            except (OSError, ValueError):
                near.close()
                continue
            far.settimeout(None)
            with self._lock:
                self._sockets |= {near, far}
                self.accepted += 1
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    def _pass_on(self, source, sink):
        try:
            while data := source.recv(4096):
                if self.delay:
                    time.sleep(self.delay)
                sink.sendall(data)
        except OSError:
            pass  # either side was cut
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        with self._lock:
            self._sockets -= {source, sink}
        source.close()


class EventStreamWatcher(threading.Thread):
    """Reads the event stream of some runs through a proxy, and comes back with its token."""

    def __init__(self, proxy, token, runs, seed):
        super().__init__(daemon=True)
        self.shown = Shown()
        self.ended = set()
        self.connections = 0
        self._proxy, self._token, self._runs = proxy, token, runs
        self._random = random.Random(seed)
        self._resume = None
        self._stopping = threading.Event()
        self.start()

    def stop(self):
        self._stopping.set()
        self.join(LONG_AGO)

    def done(self):
        return self.ended >= set(self._runs)

    def run(self):
        while not self._stopping.is_set() and not self.done():
            try:
                self._connect()
            except (OSError, http.client.HTTPException, ValueError):
                pass  # cut, or no server: that is what it is here for
            except Exception:  # an event that is not what it should be
                self.shown.faults.append(traceback.format_exc())
                return
            self._stopping.wait(self._random.uniform(0.01, 0.2))

    def _connect(self):
        path = "/api/v1/events?runs=" + ",".join(self._runs)
        if self._resume:
            path += "&resume=" + self._resume
        self.shown.back_to_token()
        host = self._proxy.target()
        connection = http.client.HTTPConnection(self._proxy.address, timeout=LONG_AGO)
        try:
            connection.request("GET", path, headers={
                "Host": host, "Authorization": f"Bearer {self._token()}"})
            response = connection.getresponse()
            if response.status != 200:
                raise ValueError(f"status {response.status}: {response.read()!r}")
            self.connections += 1
            self._read(response)
        finally:
            connection.close()

    def _read(self, response):
        name, data, token = "", "", None
        while not self._stopping.is_set():
            line = response.readline()
            if not line.endswith(b"\n"):
                return  # cut, perhaps within an event, which then does not count
            text = line.decode().rstrip("\n")
            if text.startswith("event: "):
                name = text[7:]
            elif text.startswith("data: "):
                data = text[6:]
            elif text.startswith("id: "):
                token = text[4:]
            elif text == "":
                self._take(name, data)
                if token:
                    self._resume = token
                    self.shown.note_token()
                name, data, token = "", "", None

    def _take(self, name, data):
        if name == "points":
            self.shown.add(json.loads(data))
        elif name == "end":
            self.ended.add(json.loads(data)["run"]["id"])
        elif name == "error":
            raise ValueError(data)


class CommandLineWatcher:
    """`normlab watch RUN --json`, which reads gRPC over the socket and comes back by itself."""

    def __init__(self, server, run):
        self.shown = Shown()
        self._process = server.cli_start("watch", run, "--json")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        for line in self._process.stdout:
            event = json.loads(line)
            if event["event"] == "points":
                self.shown.add(event)

    def running(self):
        return self._process.poll() is None

    def stop(self, timeout):
        """Its exit code; None when it had to be ended."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            code = None
        self._thread.join(LONG_AGO)
        self.errors = self._process.stderr.read()
        for stream in (self._process.stdout, self._process.stderr):
            stream.close()
        return code
