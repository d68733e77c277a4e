"""The server as a program: what it links, what it needs, who it lets in."""

import http.client
import os
import pathlib
import signal
import stat
import statistics
import subprocess
import tempfile
import time
import unittest

from harness import BIN, TINY, Server, ServerTest, wait_for


class Program(ServerTest):
    def test_it_links_no_torch(self):
        linked = subprocess.run(["ldd", BIN / "normlabd"], capture_output=True, text=True,
                                check=True).stdout
        self.assertIn("libgrpc++", linked)
        self.assertNotRegex(linked, "torch|libc10|libcuda")

    def test_idle_it_is_below_30_mb(self):
        self.server.get("/api/v1/runs")
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        resident = int(status.split("VmRSS:")[1].split()[0])
        print(f"idle: {resident / 1024:.1f} MiB resident")
        self.assertLess(resident * 1024, 30_000_000)

    def test_its_files_are_closed_to_others(self):
        self.server.create("a run", {**TINY, "steps": 5})
        for folder, folders, files in os.walk(self.server.data_dir):
            for name in [*folders, *files, "."]:
                mode = os.stat(os.path.join(folder, name)).st_mode
                if stat.S_ISSOCK(mode):
                    continue  # its folder is closed
                self.assertEqual(mode & 0o077, 0, f"{folder}/{name} is {oct(mode)}")

    def test_no_secret_is_in_arguments_or_logs(self):
        run = self.server.create("a run", {**TINY, "steps": 10**9})
        shepherd, trainer = self.server.processes(run)
        secrets = [self.server.endpoint["token"],
                   (self.server.attempt_dir(run) / "token").read_text().strip()]
        wait_for(lambda: self.server.step(run) > 0, "a step")
        for pid in (self.server.process.pid, shepherd, trainer):
            arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
            for secret in secrets:
                self.assertNotIn(secret, arguments)
        logs = (pathlib.Path(self.server.log.name).read_text() +
                (self.server.attempt_dir(run) / "log").read_text())
        for secret in secrets:
            self.assertNotIn(secret, logs)

    def test_the_trainer_computes_with_exactly_its_threads(self):
        # The article's model: with a tiny one, reporting would be much of the work.
        run = self.server.create("a run", {"steps": 10**9})
        _, trainer = self.server.processes(run)
        wait_for(lambda: self.server.step(run) > 3, "steps")

        def busy():
            ticks = {}
            for task in pathlib.Path(f"/proc/{trainer}/task").iterdir():
                fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                ticks[task.name] = int(fields[11])  # user time
            return ticks

        before = busy()
        wait_for(lambda: max(busy()[t] - before.get(t, 0) for t in busy()) >= 100, "work", 60)
        used = sorted((busy()[t] - before.get(t, 0) for t in busy()), reverse=True)
        self.assertGreater(used[0], 4 * sum(used[1:]), f"user time by thread: {used}")

    def test_a_second_server_on_the_folder_names_the_first(self):
        second = subprocess.run(
            [BIN / "normlabd", "--data-dir", self.server.data_dir, "--http", "127.0.0.1:0",
             "--grpc", "127.0.0.1:0"], capture_output=True, text=True, timeout=20)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f"in use by process {self.server.process.pid}", second.stderr)
        self.assertEqual(self.server.get("/api/v1/me")["role"], "admin")

    def test_a_taken_port_is_one_clear_line(self):
        with tempfile.TemporaryDirectory() as folder:
            second = subprocess.run(
                [BIN / "normlabd", "--data-dir", f"{folder}/data", "--http",
                 self.server.endpoint["http"], "--grpc", "127.0.0.1:0", "--log-level", "off"],
                capture_output=True, text=True, timeout=20)
            self.assertEqual(second.returncode, 1)
            self.assertEqual(second.stderr.count("\n"), 1, second.stderr)
            self.assertIn(self.server.endpoint["http"], second.stderr)

    def test_settings_come_from_flags_environment_and_file_in_that_order(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "normlab.toml")
            with open(config, "w") as file:
                file.write('cpu-slots = 1\nlog-level = "off"\n')
            server = Server(f"{folder}/data", "--config", config).start()
            self.assertEqual(len(server.get("/api/v1/devices")["devices"]), 1)
            server.stop()
            server.log.close()
            for text, said in (("cpu-slotz = 1\n", "cpu-slotz"), ("cpu-slots = \n", "line 1")):
                with open(config, "w") as file:
                    file.write(text)
                refused = subprocess.run([BIN / "normlabd", "--config", config, "--data-dir",
                                          f"{folder}/data"], capture_output=True, text=True)
                self.assertEqual(refused.returncode, 2)
                self.assertIn(said, refused.stderr + refused.stdout)


class Health(unittest.TestCase):
    def test_healthy_within_300_ms_of_its_start(self):
        times = []
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                server = Server(f"{folder}/data")
                start = time.monotonic()
                server.start()
                connection = http.client.HTTPConnection(server.endpoint["http"], timeout=5)
                connection.request("GET", "/healthz")
                self.assertEqual(connection.getresponse().status, 200)
                times.append(time.monotonic() - start)
                connection.close()
                self.assertEqual(server.kill(signal.SIGTERM), 0)
                server.log.close()
        print(f"healthy after {', '.join(f'{1000 * t:.0f}' for t in times)} ms")
        self.assertLess(statistics.median(times), 0.3)


class Access(ServerTest):
    def test_without_a_token_only_health_and_the_page_answer(self):
        for path in ("/api/v1/runs", "/api/v1/devices", "/api/v1/events", "/metrics",
                     "/api/v1/settings", "/api/v1/me"):
            for token in ("", "wrong", self.server.endpoint["token"][:-1]):
                status, answer = self.server.request("GET", path, token=token)
                self.assertEqual(status, 401, f"{path} {token!r}: {answer}")
        self.assertEqual(self.server.request("GET", "/healthz", token="")[0], 200)
        self.assertEqual(self.server.request("GET", "/", token="")[0], 200)

    def test_foreign_hosts_and_origins_are_refused(self):
        status, answer = self.server.request("GET", "/api/v1/runs",
                                             headers={"Host": "evil.example"})
        self.assertIn(status, (403, 421), answer)
        status, answer = self.server.request("GET", "/api/v1/runs",
                                             headers={"Origin": "http://evil.example"})
        self.assertEqual(status, 403, answer)

    def test_no_cookie_is_set(self):
        connection = http.client.HTTPConnection(self.server.endpoint["http"], timeout=5)
        connection.request("GET", "/")
        response = connection.getresponse()
        response.read()
        self.assertIsNone(response.getheader("Set-Cookie"))
        self.assertIn("default-src 'none'", response.getheader("Content-Security-Policy"))
        connection.close()

    def test_a_login_code_works_once(self):
        url = self.server.cli("open", "--print", check=0).stdout.strip()
        code = url.split("#code=")[1]
        status, login = self.server.request("POST", "/api/v1/login", {"code": code}, token="")
        self.assertEqual(status, 200, login)
        self.assertEqual(self.server.request("GET", "/api/v1/me", token=login["token"])[0], 200)
        self.assertEqual(
            self.server.request("POST", "/api/v1/login", {"code": code}, token="")[0], 401)
        self.server.kill(signal.SIGTERM)
        self.server.start()
        self.assertEqual(self.server.request("GET", "/api/v1/me", token=login["token"])[0], 200,
                         "a browser stays logged in over a restart")

    def test_metrics(self):
        status, text = self.server.request("GET", "/metrics")
        self.assertEqual(status, 200)
        self.assertIn(b"normlab_", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
