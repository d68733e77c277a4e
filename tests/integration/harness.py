"""Real programs under test: a server in a folder of its own, its HTTP API, its command line.

Needs only Python's own library. Programs come from NORMLAB_BIN (a folder). Every process started
here is ended by its number, and servers listen on loopback ports of their own.
"""

import http.client
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["NORMLAB_BIN"])
TERMINAL = {"SUCCEEDED", "FAILED", "CANCELLED", "DIVERGED", "TIMED_OUT"}

# A model so small that a step takes a fraction of a millisecond.
TINY = {"layers": 1, "dModel": 8, "heads": 2, "vocabSize": 8, "sequenceLength": 4, "batchSize": 2}


def wait_for(condition, what, timeout=60.0):
    """The first true value of condition(), looked at every few milliseconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s in vain for {what}")
        time.sleep(0.005)


def process_identity(pid):
    """(pid, start time), or None when there is no such process (or only its remains)."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text.rsplit(")", 1)[1].split()
    return None if fields[0] in "ZX" else (pid, fields[19])


class Server:
    """A normlabd. Start it, kill it, start it again on the same folder."""

    def __init__(self, data_dir, *options, env=None):
        self.data_dir = pathlib.Path(data_dir)
        self.options = options
        self.env = env or {}
        self.process = None
        self.log = open(self.data_dir.parent / f"{self.data_dir.name}.log", "ab")

    def start(self):
        self.endpoint_file.unlink(missing_ok=True)
        self.process = subprocess.Popen(
            [BIN / "normlabd", "--data-dir", self.data_dir, "--http", "127.0.0.1:0",
             "--grpc", "127.0.0.1:0", *self.options],
            stdin=subprocess.DEVNULL, stderr=self.log, env={**os.environ, **self.env})
        wait_for(lambda: self.endpoint_file.exists() or self.process.poll() is not None,
                 "the server to serve")
        if self.process.poll() is not None:
            raise AssertionError(f"normlabd ended with {self.process.returncode}")
        return self

    @property
    def endpoint_file(self):
        return self.data_dir / "endpoint.json"

    @property
    def endpoint(self):
        return json.loads(self.endpoint_file.read_text())

    def kill(self, number=signal.SIGKILL):
        """Ends the server with a signal and returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(30)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.kill(signal.SIGTERM)

    def request(self, method, path, body=None, token=None, headers=None):
        """(status, answer): the answer parsed when it is JSON."""
        endpoint = self.endpoint
        connection = http.client.HTTPConnection(endpoint["http"], timeout=30)
        sent = {"Authorization": f"Bearer {endpoint['token'] if token is None else token}"}
        if token == "":
            del sent["Authorization"]
        sent.update(headers or {})
        data = json.dumps(body) if isinstance(body, (dict, list)) else body
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            text = response.read()
        finally:
            connection.close()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text

    def get(self, path):
        status, answer = self.request("GET", path)
        assert status == 200, (status, answer)
        return answer

    def metric(self, name):
        """A number of /metrics that has no labels."""
        status, text = self.request("GET", "/metrics")
        assert status == 200, (status, text)
        return next(float(line.split()[1]) for line in text.decode().splitlines()
                    if line.startswith(name + " "))

    def create(self, name, spec, **fields):
        status, run = self.request(
            "POST", "/api/v1/runs", {"displayName": name, "spec": spec, **fields})
        assert status == 200, (status, run)
        return run["id"]

    def run(self, run_id):
        return self.get(f"/api/v1/runs/{run_id}")

    def state(self, run_id):
        return self.run(run_id)["state"].removeprefix("STATE_")

    def step(self, run_id):
        return int(self.run(run_id)["progress"].get("step", 0))

    def wait_for_state(self, run_id, *states, timeout=120.0):
        try:
            wait_for(lambda: self.state(run_id) in states, f"{run_id} to be {states}", timeout)
        except AssertionError as error:
            found = self.run(run_id)
            said = " | ".join(found[key] for key in ("endReason", "waitReason") if found.get(key))
            raise AssertionError(f"{error}; it is {found['state']}: {said}\n{self.log_tail()}"
                                 ) from None
        return self.run(run_id)

    def log_tail(self, lines=20):
        """What the server said last, for the message of a test that fails."""
        text = pathlib.Path(self.log.name).read_text(errors="replace")
        return "\n".join(["the server's log ends with:", *text.splitlines()[-lines:]])

    def series(self, run_id, name):
        """{step: value} of the default curve."""
        answer = self.get(f"/api/v1/runs/{run_id}/series?names={name}")
        column = answer["columns"].get(name, {"steps": [], "values": []})
        assert len(column["steps"]) == len(set(column["steps"])), "a step twice"
        return dict(zip(column["steps"], map(float, column["values"])))

    def attempt_dir(self, run_id, number=1):
        return self.data_dir / "attempts" / f"{run_id}-{number}"

    def processes(self, run_id, number=1):
        """(shepherd pid, trainer pid) of an attempt."""
        path = self.attempt_dir(run_id, number) / "shepherd.json"
        wait_for(path.exists, "the shepherd to say who it is")
        found = json.loads(path.read_text())
        return found["pid"], found["trainer_pid"]

    def cli(self, *arguments, check=None, timeout=300, env=None):
        """Runs the command line against this server."""
        result = subprocess.run(
            [BIN / "normlab", "--data-dir", self.data_dir, *arguments],
            capture_output=True, text=True, timeout=timeout,
            env={**os.environ, "NO_COLOR": "1", **(env or {})}, stdin=subprocess.DEVNULL)
        if check is not None and result.returncode != check:
            raise AssertionError(f"{arguments}: exit code {result.returncode}\n"
                                 f"{result.stdout}\n{result.stderr}")
        return result

    def told_everywhere(self, run_id, field="endReason"):
        """The reason, which API and command line agree about."""
        reason = self.run(run_id)[field]
        shown = json.loads(self.cli("show", run_id, "--json", check=0).stdout)
        assert shown[field] == reason, (shown[field], reason)
        words = " ".join(self.cli("show", run_id, check=0).stdout.split())
        assert " ".join(reason.split()) in words, (reason, words)
        return reason

    def cli_start(self, *arguments):
        return subprocess.Popen(
            [BIN / "normlab", "--data-dir", self.data_dir, *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)


class ServerTest(unittest.TestCase):
    """A test with a server of its own, which ends with it together with all it had started."""

    options = ()
    environment = {}

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="normlab-it-")
        self.server = Server(pathlib.Path(self.folder.name) / "data", *self.options,
                             env=self.environment).start()
        self.addCleanup(self.clean_up)

    def clean_up(self):
        if self.server.process.poll() is not None:
            self.server.start()
        shepherds = []
        for run in self.server.get("/api/v1/runs?page_size=1000&filter=archived:*").get("runs", []):
            if run["state"].removeprefix("STATE_") not in TERMINAL:
                self.server.request("POST", f"/api/v1/runs/{run['id']}:cancel")
                shepherds.append(run["id"])
        for run_id in shepherds:
            self.server.wait_for_state(run_id, *TERMINAL)
        self.server.stop()
        self.server.log.close()
        self.folder.cleanup()
