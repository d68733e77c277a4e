"""Logs of attempts are read in pieces over HTTP, and by `normlab log`."""

import base64
import os
import threading
import unittest

from harness import BIN, TINY, ServerTest


class Logs(ServerTest):
    options = ("--trainer", BIN / "normlab-fake-trainer")

    def setUp(self):
        os.environ["NORMLAB_FAKE_ENGINE"] = "steps_per_second=200"
        self.addCleanup(os.environ.pop, "NORMLAB_FAKE_ENGINE")
        super().setUp()

    def logged(self, content, **spec):
        """A run, ended, whose log says `content`."""
        run = self.server.create("logged", {**TINY, "steps": 5, **spec})
        self.server.wait_for_state(run, "SUCCEEDED")
        self.log_file(run).write_bytes(content)
        return run

    def log_file(self, run, attempt=1):
        return self.server.attempt_dir(run, attempt) / "log"

    def read(self, run, query=""):
        piece = self.server.get(f"/api/v1/runs/{run}/log{query}")
        return (base64.b64decode(piece.get("data", "")), int(piece.get("offset", 0)),
                int(piece.get("size", 0)), piece.get("attempt", 0))

    def refused(self, run, query):
        status, answer = self.server.request("GET", f"/api/v1/runs/{run}/log{query}")
        return status, answer["error"]["message"]

    def test_pieces(self):
        content = bytes(range(256)) * 1000
        run = self.logged(content)
        self.assertEqual(self.read(run), (content[:65536], 0, 256000, 1))
        self.assertEqual(self.read(run, "?offset=255000&attempt=1"),
                         (content[255000:], 255000, 256000, 1))
        self.assertEqual(self.read(run, "?offset=-10"), (content[-10:], 255990, 256000, 1))
        self.assertEqual(self.read(run, "?offset=-9999999&max_bytes=7"),
                         (content[:7], 0, 256000, 1))
        self.assertEqual(self.read(run, "?offset=999999"), (b"", 256000, 256000, 1))
        status, message = self.refused(run, "?attempt=2")
        self.assertEqual(status, 400)
        self.assertIn("there is no attempt 2 of this run: it has had 1", message)
        self.assertIn("max_bytes", str(self.refused(run, "?max_bytes=-1")))
        self.assertEqual(self.refused("01J0000000AAAAAAAAAAAAAAAA", "")[0], 404)
        self.log_file(run).unlink()
        self.assertEqual(self.read(run), (b"", 0, 0, 1))

    def test_a_run_that_has_not_started_has_an_empty_log(self):
        run = self.server.create("held", {**TINY, "steps": 5}, held=True)
        self.assertEqual(self.read(run), (b"", 0, 0, 0))
        self.assertEqual(self.server.cli("log", run).stdout, "")

    def test_command(self):
        lines = [f"line {i} " + "x" * 50 for i in range(40_000)]  # several pieces
        run = self.logged("\n".join(lines).encode() + b"\n\x1b[2Jlast, without an end \xff")
        printed = self.server.cli("log", run).stdout.splitlines()
        self.assertEqual(printed[:-1], lines)
        self.assertNotIn("\x1b", printed[-1])
        self.assertIn("last, without an end", printed[-1])
        for count in (1, 2, 30_000):
            self.assertEqual(self.server.cli("log", run, "-n", str(count)).stdout.splitlines(),
                             printed[-count:])
        self.assertEqual(self.server.cli("log", run, "-n", "0").stdout, "")
        failed = self.server.cli("log", run, "--attempt", "3", check=4)
        self.assertIn("no attempt 3", failed.stderr)

    def test_following_ends_with_the_attempt(self):
        run = self.server.create("followed", {**TINY, "steps": 100_000})
        self.server.wait_for_state(run, "RUNNING")
        followed = []
        thread = threading.Thread(
            target=lambda: followed.append(self.server.cli("log", run, "-f").stdout))
        thread.start()
        with self.log_file(run).open("ab") as log:
            log.write(b"said while it ran\n")
        self.server.request("POST", f"/api/v1/runs/{run}:cancel")
        self.server.wait_for_state(run, "CANCELLED")
        thread.join(timeout=60)
        self.assertIn("said while it ran\n", followed[0])


if __name__ == "__main__":
    unittest.main()
