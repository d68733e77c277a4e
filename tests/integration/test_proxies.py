"""Event streams, the API and the page behind the real nginx and the real Caddy, with the files of
deploy/proxies and the buffering that these programs have by default."""

import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from harness import BIN, TINY, Server, wait_for

PROXIES = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "proxies"
NAME = "lab.example.org"


def program(name):
    """The path of a proxy's program, or None."""
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Stream:
    """One reading of /api/v1/events through the proxy."""

    def __init__(self, proxy, token, query):
        self.connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
        self.connection.request("GET", f"/api/v1/events?{query}", headers={
            "Host": NAME, "Authorization": f"Bearer {token}"})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        self.token = None

    def events(self):
        """(name, data) as they come; an end without an error is the server's own."""
        name, data = None, None
        while True:
            line = self.response.readline().decode()
            if not line:
                return
            line = line.rstrip("\n")
            if line.startswith("id: "):
                self.token = line[4:]
            elif line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif line == "" and name:
                yield name, data
                name = None

    def close(self):
        self.connection.close()


class Behind:
    """What is asked of every proxy. Subclasses say how theirs is started."""

    program_name = ""

    def configuration(self, folder, http_address, read_timeout):
        raise NotImplementedError

    def setUp(self):
        self.program = program(self.program_name)
        if self.program is None:
            missing = f"{self.program_name} is not installed (see deploy/packages/test.txt)"
            if os.environ.get("CI") == "true":
                self.fail(missing)
            self.skipTest(missing)
        self.folder = tempfile.TemporaryDirectory(prefix="normlab-proxies-")
        self.addCleanup(self.folder.cleanup)
        self.port = free_port()
        self.process = self.server = None

    def start(self, heartbeat, read_timeout=60, engine="steps_per_second=10,value=steady"):
        folder = pathlib.Path(self.folder.name)
        os.environ["NORMLAB_FAKE_ENGINE"] = engine
        self.addCleanup(os.environ.pop, "NORMLAB_FAKE_ENGINE")
        self.server = Server(folder / "data", "--trainer", BIN / "normlab-fake-trainer",
                             "--allowed-hosts", NAME, "--heartbeat", str(heartbeat)).start()
        self.addCleanup(self.server.log.close)
        self.addCleanup(self.server.stop)
        self.command = self.configuration(folder, self.server.endpoint["http"], read_timeout)
        self.start_proxy()
        self.addCleanup(self.stop_proxy)

    def start_proxy(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                        stdout=self.server.log, stderr=self.server.log,
                                        env={**os.environ, "HOME": self.folder.name})

        def listens():
            assert self.process.poll() is None, (
                f"{self.program_name} ended:\n{pathlib.Path(self.server.log.name).read_text()}")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        wait_for(listens, f"{self.program_name} to listen")

    def stop_proxy(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)

    def request(self, method, path, body=None, host=NAME, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers["Host"] = host
        headers.setdefault("Authorization", f"Bearer {self.server.endpoint['token']}")
        connection.request(method, path, json.dumps(body) if body else None,
                           {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response, text

    def stream(self, query):
        stream = Stream(self, self.server.endpoint["token"], query)
        self.addCleanup(stream.close)
        return stream

    def test_each_event_comes_through_at_once(self):
        self.start(heartbeat=15)
        run = self.server.create("live", {**TINY, "steps": 40})
        steps, delays = [], []
        for name, data in self.stream(f"runs={run}").events():
            if name != "points":
                continue
            now = time.monotonic_ns()
            column = data["columns"]["loss"]
            steps += column["steps"]
            delays += [(now - sent) / 1e9 for sent in column["values"]]
        self.assertEqual(steps, list(range(1, 41)))
        self.assertLess(max(delays), 1.0, "the proxy held events back")

    def test_idle_streams_live_by_their_heartbeats(self):
        # Twenty minutes with a heartbeat every 15 s and a proxy that waits 60 s, sixty times faster.
        self.start(heartbeat=0.25, read_timeout=1)
        events = self.stream("all=true").events()
        start, heartbeats = time.monotonic(), 0
        while time.monotonic() < start + 6:
            name, _ = next(events)
            heartbeats += name == "heartbeat"
        self.assertGreater(heartbeats, 10)

    def test_a_stream_goes_on_where_it_was_when_the_proxy_is_restarted(self):
        self.start(heartbeat=15)
        run = self.server.create("restarted", {**TINY, "steps": 60})
        stream = self.stream(f"runs={run}")
        steps, ended = [], False

        def take(events, enough):
            nonlocal ended
            for name, data in events:
                if name == "points":
                    steps.extend(data["columns"]["loss"]["steps"])
                ended = ended or name == "end"
                if len(steps) >= enough and stream.token:
                    return

        take(stream.events(), 15)
        self.process.kill()
        self.process.wait(30)
        stream.close()
        # Nothing may still hold the port: workers of a killed nginx notice it by themselves.
        self.end_workers()
        self.start_proxy()
        stream = self.stream(f"runs={run}&resume={stream.token}")
        take(stream.events(), 1000)
        self.assertTrue(ended)
        self.assertEqual(steps, list(range(1, 61)))

    def end_workers(self):
        """Ends what a killed proxy leaves behind."""

    def test_page_and_api_work_and_foreign_names_and_pages_do_not(self):
        self.start(heartbeat=15)
        response, text = self.request("GET", "/")
        self.assertEqual(response.status, 200)
        self.assertIn(b"<!doctype html", text[:200].lower())
        run = {"displayName": "by proxy", "spec": {**TINY, "steps": 2}}
        response, text = self.request("POST", "/api/v1/runs", run, Origin=f"http://{NAME}")
        self.assertEqual(response.status, 200, text)
        made = json.loads(text)["id"]
        response, text = self.request("GET", f"/api/v1/runs/{made}")
        self.assertEqual(json.loads(text)["displayName"], "by proxy")
        response, _ = self.request("POST", "/api/v1/runs", run, Origin="http://evil.example")
        self.assertEqual(response.status, 403)
        response, text = self.request("GET", "/api/v1/runs", host="evil.example")
        self.assertNotIn(b"by proxy", text)
        self.assertEqual(self.server.wait_for_state(made, "SUCCEEDED")["displayName"], "by proxy")


class Nginx(Behind, unittest.TestCase):
    program_name = "nginx"

    def configuration(self, folder, http_address, read_timeout):
        site = (PROXIES / "nginx.conf").read_text()
        for standing, here in (("listen 80;", f"listen 127.0.0.1:{self.port};"),
                               ("127.0.0.1:8710", http_address)):
            assert standing in site, standing
            site = site.replace(standing, here)
        # Temporary files in a folder of its own; its worker must be able to write there.
        temporary = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in
                            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        user = "user root;\n" if os.geteuid() == 0 else ""
        (folder / "main.conf").write_text(
            f"{user}daemon off;\npid {folder}/nginx.pid;\nerror_log stderr;\nevents {{}}\n"
            f"http {{\naccess_log off;\nproxy_read_timeout {read_timeout}s;\n{temporary}{site}}}\n")
        return [self.program, "-p", folder, "-e", "stderr", "-c", folder / "main.conf"]

    def start_proxy(self):
        super().start_proxy()
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        wait_for(lambda: pathlib.Path(children).read_text().split(), "nginx to have a worker")
        self.workers = [int(pid) for pid in pathlib.Path(children).read_text().split()]

    def end_workers(self):
        for pid in self.workers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def test_a_reload_ends_no_stream_for_good(self):
        self.start(heartbeat=15)
        run = self.server.create("reloaded", {**TINY, "steps": 40})
        steps = []
        for name, data in self.stream(f"runs={run}").events():
            if name == "points":
                steps += data["columns"]["loss"]["steps"]
                if steps[-1] == 10:
                    self.process.send_signal(signal.SIGHUP)
        self.assertEqual(steps, list(range(1, 41)))

    def test_without_heartbeats_an_idle_stream_would_be_cut(self):
        self.start(heartbeat=60, read_timeout=1)
        start = time.monotonic()
        events = self.stream("all=true").events()
        with self.assertRaises((http.client.IncompleteRead, ConnectionError, StopIteration)):
            for _ in range(100):
                next(events)
        self.assertLess(time.monotonic(), start + 15)


class Caddy(Behind, unittest.TestCase):
    program_name = "caddy"

    def configuration(self, folder, http_address, read_timeout):
        site = (PROXIES / "Caddyfile").read_text()
        standing, here = f"http://{NAME} {{", f"http://{NAME}:{self.port} {{\n\tbind 127.0.0.1"
        for old, new in ((standing, here), ("127.0.0.1:8710", http_address)):
            assert old in site, old
            site = site.replace(old, new)
        site = site.replace(f"reverse_proxy {http_address}",
                            f"reverse_proxy {http_address} {{\n\t\ttransport http {{\n"
                            f"\t\t\tread_timeout {read_timeout}s\n\t\t}}\n\t}}")
        (folder / "Caddyfile").write_text(
            "{\n\tadmin off\n\tauto_https off\n}\n" + site)
        return [self.program, "run", "--adapter", "caddyfile", "--config", folder / "Caddyfile"]


if __name__ == "__main__":
    unittest.main(verbosity=2)
