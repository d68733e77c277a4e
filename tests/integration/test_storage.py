"""The database under care: copies, checks, compaction, foreign readers, and who may not open it."""

import hashlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from harness import BIN, TINY, Server, ServerTest, wait_for

LONG = {**TINY, "steps": 200_000}

# Stays in a read transaction until its standard input ends.
READER = """
import sqlite3, sys
database = sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True, isolation_level=None)
database.execute("BEGIN")
database.execute("SELECT count(*) FROM runs").fetchone()
print("reading", flush=True)
sys.stdin.read()
"""


def problems(server):
    status, health = server.request("GET", "/healthz", token="")
    assert status == 200, (status, health)
    assert (health["status"] == "ok") == ("problems" not in health), health
    return health.get("problems", [])


class Backup(ServerTest):
    options = ("--cpu-slots", "1")

    def backup(self, *options, check=0):
        path = pathlib.Path(self.folder.name) / "copy.db"
        result = self.server.cli("backup", "-o", path, *options, check=check)
        return path, result

    def test_a_copy_made_while_a_run_streams_is_a_prefix_of_it_and_another_server_starts_on_it(self):
        done = self.server.create("done", {**TINY, "steps": 300})
        self.server.wait_for_state(done, "SUCCEEDED")
        running = self.server.create("running", LONG)
        wait_for(lambda: self.server.step(running) > 1000, "some steps")
        token = self.resume_token(done)
        before = self.server.step(running)
        path, result = self.backup()
        after = self.server.step(running)
        self.assertIn("checked", result.stdout)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(list((self.server.data_dir / "copies").iterdir()), [], "nothing is left")

        restored_dir = pathlib.Path(self.folder.name) / "restored"
        restored_dir.mkdir(mode=0o700)
        shutil.copy(path, restored_dir / "normlab.db")
        restored = Server(restored_dir, "--cpu-slots", "1").start()
        self.addCleanup(restored.log.close)
        self.addCleanup(restored.stop)
        self.assertEqual(restored.series(done, "loss"), self.server.series(done, "loss"))
        # Its trainer is not there, though one with the numbers of the original's is: by the rules
        # of recovery it ends, or starts again; and the original goes on.
        restored.request("POST", f"/api/v1/runs/{running}:cancel")
        restored.wait_for_state(running, "FAILED", "CANCELLED")
        step = self.server.step(running)
        wait_for(lambda: self.server.step(running) > step, "the original to go on")
        copied = restored.series(running, "loss")
        original = self.server.series(running, "loss")
        self.assertGreaterEqual(len(copied), before, "what was stored before is in the copy")
        self.assertLessEqual(before, after)
        self.assertEqual(copied, {step: original[step] for step in range(1, len(copied) + 1)})
        # What a watcher knows of the original says nothing about the copy.
        status, answer = restored.request("GET", f"/api/v1/events?runs={done}&resume={token}")
        self.assertEqual(status, 400, answer)
        self.assertIn("another store", json.dumps(answer))
        self.assertEqual(self.server.cli("doctor", "--check", "--json").returncode, 0)

    def resume_token(self, run):
        result = self.server.cli("watch", run, "--json", check=0)
        tokens = [json.loads(line).get("resumeToken") for line in result.stdout.splitlines()]
        return [token for token in tokens if token][-1]

    def test_nothing_is_replaced_unasked(self):
        path, _ = self.backup()
        first = path.read_bytes()
        _, result = self.backup(check=4)
        self.assertIn("--force", result.stderr)
        self.assertEqual(path.read_bytes(), first)
        self.server.create("one more", {**TINY, "steps": 1})
        self.backup("--force")
        self.assertNotEqual(path.read_bytes(), first)
        self.assertEqual([entry.name for entry in path.parent.glob("copy.db*")], ["copy.db"])

    def test_a_copy_that_is_broken_off_leaves_nothing_behind(self):
        fill(self.server, 200_000)
        folder = pathlib.Path(self.folder.name)
        for number in (signal.SIGINT, signal.SIGKILL):
            client = self.server.cli_start("backup", "-o", folder / "broken.db")
            copies = self.server.data_dir / "copies"
            wait_for(lambda: list(copies.iterdir()) or client.poll() is not None, "the copy")
            client.send_signal(number)
            client.communicate(timeout=30)
            wait_for(lambda: not list(copies.iterdir()), "the server's copy to go")
            self.assertFalse((folder / "broken.db").exists())
        # What a server that is killed leaves, the next one removes.
        leftover = self.server.data_dir / "copies" / "normlab-1-1.copy"
        self.server.kill()
        leftover.write_bytes(b"half of a database")
        self.server.start()
        self.assertFalse(leftover.exists())

    def test_only_one_at_a_time(self):
        fill(self.server, 200_000)
        first = self.server.cli_start("backup", "-o", pathlib.Path(self.folder.name) / "first.db")
        wait_for(lambda: list((self.server.data_dir / "copies").iterdir())
                 or first.poll() is not None, "the copy")
        first.send_signal(signal.SIGSTOP)
        try:
            _, second = self.backup(check=4)
            self.assertIn("at work on its database", second.stderr)
        finally:
            first.send_signal(signal.SIGCONT)
        out, err = first.communicate(timeout=60)
        self.assertEqual(first.returncode, 0, out + err)


    def test_only_for_admins(self):
        self.server.stop()
        with sqlite3.connect(self.server.data_dir / "normlab.db") as database:
            database.execute("INSERT INTO users (id, name, role, create_time) VALUES (77, 'guest', 'member', 0)")
            database.execute("INSERT INTO tokens VALUES (?, 77, 'browser', 0)",
                             (hashlib.sha256(b"guests-token").hexdigest(),))
        database.close()
        self.server.start()
        guest = {"NORMLAB_SERVER": self.server.endpoint["grpc"], "NORMLAB_TOKEN": "guests-token"}
        path = pathlib.Path(self.folder.name) / "stolen.db"
        for command in (["backup", "-o", path], ["compact"], ["doctor", "--check"]):
            result = self.server.cli(*command, env=guest)
            self.assertNotEqual(result.returncode, 0, command)
            self.assertIn("only an admin", result.stdout + result.stderr)
        self.assertFalse(path.exists())
        self.assertEqual(self.server.cli("ls", env=guest).returncode, 0)


def fill(server, rows):
    """Makes the database larger by so many rows of about 40 bytes: runs deleted long ago."""
    server.stop()
    with sqlite3.connect(server.data_dir / "normlab.db") as database:
        database.executemany("INSERT INTO deleted_runs (sequence, run) VALUES (0, ?)",
                             ((f"01J{number:023}",) for number in range(rows)))
    database.close()
    server.start()


class Check(ServerTest):
    def test_faults_are_named_and_a_backup_is_refused(self):
        run = self.server.create("harmed", {**TINY, "steps": 200})
        self.server.wait_for_state(run, "SUCCEEDED")
        good = self.server.cli("doctor", "--check", check=0)
        self.assertIn("integrity", good.stdout)
        self.server.stop()
        with sqlite3.connect(self.server.data_dir / "normlab.db") as database:
            database.execute("UPDATE attempts SET last_step = 150")
            database.execute("INSERT INTO points VALUES (4711, 1, 2.0)")
        database.close()
        self.server.start()
        result = self.server.cli("doctor", "--check", "--json")
        self.assertNotEqual(result.returncode, 0)
        faults = [check["detail"] for check in json.loads(result.stdout)["checks"]
                  if check["name"] == "integrity"]
        self.assertTrue(any("4711" in fault for fault in faults), faults)
        self.assertTrue(any(run in fault and "200" in fault for fault in faults), faults)
        refused = self.server.cli("backup", "-o", pathlib.Path(self.folder.name) / "no.db", check=4)
        self.assertIn("faults", refused.stderr)


class Compact(ServerTest):
    options = ("--cpu-slots", "1")

    def test_space_of_deleted_rows_goes_back_to_the_disk_while_a_run_goes_on(self):
        self.compact()

    def test_a_database_of_an_early_version_is_written_anew_first(self):
        def as_early_versions_made_it(database):
            database.isolation_level = None
            database.execute("PRAGMA auto_vacuum = NONE")
            database.execute("VACUUM")
            self.assertEqual(database.execute("PRAGMA auto_vacuum").fetchone()[0], 0)
            database.isolation_level = ""

        self.compact(as_early_versions_made_it)
        self.server.stop()
        with sqlite3.connect(self.server.data_dir / "normlab.db") as database:
            self.assertEqual(database.execute("PRAGMA auto_vacuum").fetchone()[0], 2)
        database.close()
        self.server.start()

    def compact(self, prepare=lambda database: None):
        fill(self.server, 300_000)
        self.server.stop()
        with sqlite3.connect(self.server.data_dir / "normlab.db") as database:
            prepare(database)
            database.execute("DELETE FROM deleted_runs")
        database.close()
        self.server.start()
        run = self.server.create("meanwhile", LONG)
        wait_for(lambda: self.server.step(run) > 10, "some steps")
        storage = self.server.get("/api/v1/storage")
        self.assertGreater(int(storage["unusedBytes"]), 5_000_000)
        result = self.server.cli("compact", "--json", check=0)
        answer = json.loads(result.stdout)
        self.assertLess(int(answer["bytesAfter"]), int(answer["bytesBefore"]) - 5_000_000)
        step = self.server.step(run)
        wait_for(lambda: self.server.step(run) > step, "the run to go on")
        self.assertEqual(self.server.cli("doctor", "--check").returncode, 0)


class ForeignReader(ServerTest):
    options = ("--cpu-slots", "1", "--wal-notice", "1", "--wal-limit", "2")

    def test_it_is_named_everywhere_points_wait_and_all_is_well_after_it(self):
        run = self.server.create("disturbed", {**TINY, "steps": 400_000})
        wait_for(lambda: self.server.step(run) > 10, "some steps")
        watch = self.server.cli_start("watch", run, "--json")
        reader = subprocess.Popen(
            [sys.executable, "-c", READER, self.server.data_dir / "normlab.db"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(reader.wait)
        self.addCleanup(reader.stdin.close)
        self.assertEqual(reader.stdout.readline(), "reading\n")
        wait_for(lambda: any("points wait" in text for text in problems(self.server)),
                 "the problem")
        told = problems(self.server)
        self.assertTrue(any(f"process {reader.pid} (" in text for text in told), told)
        self.assertIn(f"process {reader.pid}", self.server.cli("ls", check=0).stderr)
        self.assertIn(f"process {reader.pid}", self.server.cli("doctor").stdout)

        step = wait_for(self.stands_still(run), "the run to stand still")
        queued = self.server.create("queued", {**TINY, "steps": 10})  # commits all the same
        self.server.request("POST", f"/api/v1/runs/{queued}:cancel")
        self.assertEqual(self.server.state(queued), "CANCELLED")

        reader.stdin.close()
        ended = time.monotonic()
        wait_for(lambda: not problems(self.server), "all to be well")
        wait_for(lambda: self.server.step(run) > step, "the run to go on")
        print(f"well {time.monotonic() - ended:.1f} s after the reader has ended")
        self.assertLess((self.server.data_dir / "normlab.db-wal").stat().st_size, 2 << 20)
        self.server.request("POST", f"/api/v1/runs/{run}:cancel")
        out, _ = watch.communicate(timeout=60)
        notices = [event["problems"] if "problems" in event else []
                   for event in map(json.loads, out.splitlines()) if event["event"] == "notice"]
        self.assertTrue(any(str(reader.pid) in text for told in notices for text in told), notices)
        self.assertEqual(notices[-1], [])
        curve = self.server.series(run, "loss")
        self.assertEqual(sorted(curve), list(range(1, self.server.step(run) + 1)))

    def stands_still(self, run):
        def look():
            before = self.server.step(run)
            try:
                wait_for(lambda: self.server.step(run) != before, "a step", timeout=1)
            except AssertionError:
                return before
            return None
        return look


class Opening(unittest.TestCase):
    """One clear line, and nothing touched."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="normlab-care-")
        self.addCleanup(self.folder.cleanup)
        self.data = pathlib.Path(self.folder.name) / "data"
        self.data.mkdir(mode=0o700)

    def make_database(self):
        server = Server(self.data).start()
        server.stop()
        server.log.close()

    def refused(self, *options):
        result = subprocess.run(
            [BIN / "normlabd", "--data-dir", self.data, "--http", "127.0.0.1:0",
             "--grpc", "127.0.0.1:0", *options],
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 1, result.stderr)
        lines = [line for line in result.stderr.splitlines() if line.startswith("normlabd:")]
        self.assertEqual(len(lines), 1, result.stderr)
        return lines[0]

    def test_a_second_server_names_the_first(self):
        server = Server(self.data, "--cpu-slots", "1").start()
        self.addCleanup(server.log.close)
        self.addCleanup(server.stop)
        line = self.refused()
        self.assertIn(f"process {server.process.pid}", line)
        self.assertIn(server.endpoint["http"], line)
        self.assertRegex(line, r"since 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")
        self.assertEqual(server.request("GET", "/healthz")[0], 200)

    def test_no_database(self):
        text = b"this is a letter and not a database, " * 40
        (self.data / "normlab.db").write_bytes(text)
        self.assertIn("not a database", self.refused())
        self.assertEqual((self.data / "normlab.db").read_bytes(), text)

    def test_a_newer_schema(self):
        self.make_database()
        with sqlite3.connect(self.data / "normlab.db") as database:
            database.execute("PRAGMA user_version = 4711")
        database.close()
        content = (self.data / "normlab.db").read_bytes()
        line = self.refused()
        self.assertIn("schema 4711", line)
        self.assertIn("newer normlabd", line)
        self.assertEqual((self.data / "normlab.db").read_bytes(), content)

    def test_a_file_of_somebody_else(self):
        if os.geteuid() != 0:
            self.skipTest("only root can give a file away")
        self.make_database()
        os.chown(self.data / "normlab.db", 1234, 1234)
        line = self.refused()
        self.assertIn("belongs to another user (uid 1234)", line)

    def test_a_file_that_cannot_be_written(self):
        self.make_database()
        (self.data / "normlab.db").chmod(0o400)
        line = self.refused()
        self.assertIn("cannot be written", line)
        self.assertIn("chmod", line)


if __name__ == "__main__":
    unittest.main(verbosity=2)
