"""A server that a team shares: who may do what, tokens that stop counting, and the audit."""

import http.client
import os
import pathlib
import stat
import subprocess
import threading
import time
import unittest

import grpc

from harness import BIN, TINY, ServerTest


class Users(ServerTest):
    def setUp(self):
        super().setUp()
        self.tokens = {}
        self.home = pathlib.Path(self.folder.name) / "home"
        self.home.mkdir()

    def add(self, name, role):
        file = pathlib.Path(self.folder.name) / f"{name}.token"
        self.server.cli("user", "add", name, "--role", role, "--token-file", file, check=0)
        self.tokens[name] = file.read_text().strip()
        return file

    def ask(self, name, method, path, body=None):
        """(status, answer) of an HTTP call by that user."""
        return self.server.request(method, path, body, token=self.tokens[name])

    def cli_of(self, name, *arguments):
        """The command line of that user, through TCP."""
        return self.server.cli(*arguments, env={
            "NORMLAB_SERVER": self.server.endpoint["grpc"], "NORMLAB_TOKEN": self.tokens[name],
            "XDG_CONFIG_HOME": str(self.home)})

    def submit(self, name, display_name, spec):
        status, run = self.ask(name, "POST", "/api/v1/runs",
                               {"displayName": display_name, "spec": spec})
        self.assertEqual(status, 200, run)
        return run["id"]

    def audit(self, query=""):
        return self.server.get(f"/api/v1/audit?page_size=1000{query}").get("events", [])


class Ownership(Users):
    def test_a_run_is_not_cancelled_with_anothers_token(self):
        for name, role in (("ada", "member"), ("bob", "member"), ("vic", "viewer"),
                           ("eve", "admin")):
            self.add(name, role)
        run = self.submit("ada", "ada's", {**TINY, "steps": 10**9})
        self.server.wait_for_state(run, "RUNNING")
        for name in ("bob", "vic"):
            for verb in ("cancel", "pause", "resume", "retry", "probe"):
                status, answer = self.ask(name, "POST", f"/api/v1/runs/{run}:{verb}")
                self.assertEqual(status, 403, f"{name} {verb}: {answer}")
            self.assertEqual(self.ask(name, "DELETE", f"/api/v1/runs/{run}")[0], 403)
            self.assertEqual(
                self.ask(name, "PATCH", f"/api/v1/runs/{run}", {"notes": "mine"})[0], 403)
            cancelled = self.cli_of(name, "cancel", run)
            self.assertEqual(cancelled.returncode, 4, cancelled.stderr)
            self.assertEqual(self.ask(name, "GET", f"/api/v1/runs/{run}")[0], 200)
        self.assertEqual(self.ask("vic", "POST", "/api/v1/runs", {"spec": TINY})[0], 403)
        self.assertEqual(self.server.state(run), "RUNNING")
        self.assertEqual([line["action"] for line in self.audit(f"&run={run}")], ["create"])
        self.assertEqual(self.cli_of("ada", "pause", run).returncode, 0)
        self.server.wait_for_state(run, "PAUSED")
        self.assertEqual(self.ask("eve", "POST", f"/api/v1/runs/{run}:cancel")[0], 200)
        self.server.wait_for_state(run, "CANCELLED")

    def test_only_admins_look_after_users(self):
        self.add("ada", "member")
        for method, path, body in (("POST", "", {"name": "mallory", "role": "admin"}),
                                   ("PATCH", "/ada", {"role": "admin"}), ("DELETE", "/ada", None),
                                   ("POST", "/nobody:rotate", None)):
            status, answer = self.ask("ada", method, f"/api/v1/users{path}", body)
            self.assertEqual(status, 403, f"{method} {path}: {answer}")
        _, answer = self.ask("ada", "GET", "/api/v1/users")
        self.assertEqual([user["name"] for user in answer["users"]], ["ada"])
        self.assertGreater(len(self.server.get("/api/v1/users")["users"]), 1)
        owner = self.server.get("/api/v1/me")["name"]
        self.assertEqual(self.server.request("DELETE", f"/api/v1/users/{owner}")[0], 400)
        status, _ = self.server.request("PATCH", f"/api/v1/users/{owner}", {"role": "member"})
        self.assertEqual(status, 400)

    def test_limits_are_kept_and_changed_one_by_one(self):
        self.add("ada", "member")
        status, _ = self.server.request("PATCH", "/api/v1/users/ada",
                                        {"limits": {"running": "2", "gpuMemoryBytes": "1000"}})
        self.assertEqual(status, 200)
        status, user = self.server.request("PATCH", "/api/v1/users/ada",
                                           {"limits": {"running": "0"}})
        self.assertEqual(status, 200, user)
        self.assertEqual(user["limits"],
                         {"running": "0", "queued": "0", "gpuMemoryBytes": "1000"})
        self.assertEqual(user["role"], "member")
        status, answer = self.server.request("PATCH", "/api/v1/users/ada",
                                             {"limits": {"queued": "-1"}})
        self.assertEqual(status, 400)
        self.assertIn("user.limits.queued", str(answer))


class Tokens(Users):
    def test_a_removed_users_streams_end_and_open_connections_are_refused(self):
        self.add("ada", "member")
        run = self.submit("ada", "a run", {**TINY, "steps": 10**9})
        # An event stream, a gRPC watch, and a connection that made a call and stays open.
        stream = http.client.HTTPConnection(self.server.endpoint["http"], timeout=60)
        headers = {"Authorization": f"Bearer {self.tokens['ada']}"}
        stream.request("GET", "/api/v1/events?all=true", headers=headers)
        events = stream.getresponse()
        self.assertEqual(events.status, 200)
        ended = []
        text = []

        def read():
            while piece := events.read1(65536):
                text.append(piece)
            ended.append(time.monotonic())

        reader = threading.Thread(target=read)
        reader.start()
        channel = grpc.insecure_channel(self.server.endpoint["grpc"])
        watch = channel.unary_stream("/normlab.v1.RunService/WatchRuns")(
            bytes([0x0A, len(run)]) + run.encode(),  # runs = 1
            metadata=[("authorization", f"Bearer {self.tokens['ada']}")])
        next(watch)
        kept = http.client.HTTPConnection(self.server.endpoint["http"], timeout=30)
        kept.request("GET", "/api/v1/me", headers=headers)
        self.assertEqual(kept.getresponse().read() != b"", True)
        removed = time.monotonic()
        self.server.cli("user", "rm", "ada", "--yes", check=0)
        with self.assertRaises(grpc.RpcError) as refused:
            for _ in watch:
                pass
        self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        watched_for = time.monotonic() - removed
        reader.join(30)
        self.assertTrue(ended, "the event stream goes on")
        print(f"streams ended {1000 * watched_for:.0f} ms (gRPC) and "
              f"{1000 * (ended[0] - removed):.0f} ms (HTTP) after the removal began")
        self.assertLess(ended[0] - removed, 5)
        self.assertLess(watched_for, 5)
        self.assertIn(b"counts no more", b"".join(text))
        kept.request("GET", "/api/v1/me", headers=headers)
        self.assertEqual(kept.getresponse().status, 401)
        channel.close()
        kept.close()
        stream.close()
        # The run goes on, under the name.
        self.assertEqual(self.server.run(run)["user"], "ada")
        self.assertNotIn(self.server.state(run), ("CANCELLED", "CANCELLING", "FAILED"))
        # The name can be made again.
        pathlib.Path(self.folder.name, "ada.token").unlink()
        old = self.tokens["ada"]
        self.add("ada", "member")
        self.assertEqual(self.ask("ada", "POST", f"/api/v1/runs/{run}:cancel")[0], 200)
        self.assertEqual(self.server.request("GET", "/api/v1/me", token=old)[0], 401)

    def test_rotating_ends_browsers_tokens_too(self):
        self.add("ada", "member")
        _, code = self.ask("ada", "POST", "/api/v1/login-codes")
        status, login = self.server.request("POST", "/api/v1/login", {"code": code["code"]},
                                            token="")
        self.assertEqual(status, 200, login)
        self.assertEqual(login["user"]["name"], "ada")
        self.assertEqual(self.server.request("GET", "/api/v1/me", token=login["token"])[0], 200)
        status, new = self.ask("ada", "POST", "/api/v1/users/ada:rotate")
        self.assertEqual(status, 200, new)
        for token in (login["token"], self.tokens["ada"]):
            self.assertEqual(self.server.request("GET", "/api/v1/me", token=token)[0], 401)
        self.assertEqual(self.server.request("GET", "/api/v1/me", token=new["token"])[0], 200)

    def test_the_owners_token_can_be_replaced_while_the_server_runs(self):
        old = self.server.endpoint["token"]
        file = pathlib.Path(self.folder.name) / "owner.new"
        self.server.cli("user", "rotate", "--token-file", file, check=0)
        new = file.read_text().strip()
        self.assertNotEqual(new, old)
        self.assertEqual(self.server.endpoint["token"], new)
        self.assertEqual((self.server.data_dir / "owner-token").read_text().strip(), new)
        self.assertEqual(self.server.request("GET", "/api/v1/me", token=old)[0], 401)
        self.server.cli("ls", check=0)
        self.server.stop()
        self.server.start()
        self.assertEqual(self.server.endpoint["token"], new)
        self.server.cli("ls", check=0)

    def test_a_login_is_kept_and_no_token_is_in_logs_or_arguments(self):
        file = self.add("ada", "member")
        self.assertEqual(stat.S_IMODE(file.stat().st_mode), 0o600)
        environment = {"XDG_CONFIG_HOME": str(self.home), "NORMLAB_DATA_DIR": "",
                       "XDG_DATA_HOME": str(self.home / "nothing")}

        def cli(*arguments):
            return subprocess.run([BIN / "normlab", *arguments], capture_output=True, text=True,
                                  env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
        self.assertEqual(cli("ls").returncode, 3)
        login = cli("login", self.server.endpoint["grpc"], "--token-file", str(file))
        self.assertEqual(login.returncode, 0, login.stderr)
        self.assertIn("as ada (member)", login.stdout)
        self.assertEqual(cli("ls").returncode, 0)
        self.assertEqual(cli("user", "add", "x", "--role", "admin", "--print-token").returncode, 4)
        self.assertEqual(cli("logout").returncode, 0)
        self.assertEqual(cli("ls").returncode, 3)
        wrong = "0" * 64
        for _ in range(50):
            self.assertEqual(self.server.request("GET", "/api/v1/me", token=wrong)[0], 401)
        log = pathlib.Path(self.server.log.name).read_text()
        failures = log.count("authentication failed")
        self.assertGreater(failures, 0)
        self.assertLess(failures, 50)
        self.assertIn("peer=127.0.0.1:", log)
        for token in (self.tokens["ada"], wrong, self.server.endpoint["token"]):
            self.assertNotIn(token, log)
            arguments = pathlib.Path(f"/proc/{self.server.process.pid}/cmdline").read_text()
            self.assertNotIn(token, arguments)


class Audit(Users):
    def test_every_change_has_its_line(self):
        self.add("ada", "member")
        run = self.submit("ada", "first", {**TINY, "steps": 10**9})
        self.ask("ada", "PATCH", f"/api/v1/runs/{run}", {"displayName": "second", "pinned": True})
        self.ask("ada", "PATCH", f"/api/v1/runs/{run}", {"pinned": False})
        self.server.wait_for_state(run, "RUNNING")
        self.assertEqual(self.cli_of("ada", "cancel", run).returncode, 0)
        self.server.wait_for_state(run, "CANCELLED")
        self.server.cli("rm", run, "--yes", check=0)
        lines = self.audit(f"&run={run}")
        self.assertEqual([line["action"] for line in lines],
                         ["delete", "cancel", "update", "update", "create"])
        self.assertEqual([line["user"] for line in lines[1:]], ["ada"] * 4)
        self.assertEqual(lines[0]["origin"], "unix socket")
        self.assertRegex(lines[1]["origin"], r"^ipv4:127\.0\.0\.1:\d+$")
        self.assertRegex(lines[4]["origin"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual(lines[1]["detail"], "running -> cancelling")
        self.assertEqual(lines[3]["detail"],
                         'display_name: "first" -> "second"; pinned: "false" -> "true"')
        self.assertIn("layers=1", lines[4]["detail"])
        # Ada reads of her deleted run; another does not.
        self.add("bob", "member")
        self.assertEqual(len(self.ask("ada", "GET", f"/api/v1/audit?run={run}")[1]["events"]), 5)
        self.assertEqual(self.ask("bob", "GET", f"/api/v1/audit?run={run}")[1]["events"], [])
        shown = self.server.cli("audit", "--run", run, "-n", "2", check=0).stdout
        self.assertIn("running -> cancelling", shown)
        # Across a restart nothing is lost, and nothing is added.
        before = self.audit()
        self.server.stop()
        self.server.start()
        self.assertEqual(self.audit(), before)

    def test_changes_of_the_queue_say_from_what_to_what(self):
        self.add("ada", "member")
        runs = []
        for i in range(3):
            status, run = self.ask("ada", "POST", "/api/v1/runs", {
                "displayName": f"run {i}", "spec": TINY, "held": True})
            self.assertEqual(status, 200, run)
            runs.append(run["id"])

        def do(run, verb, body=None):
            status, answer = self.ask("ada", "POST", f"/api/v1/runs/{run}:{verb}", body)
            self.assertEqual(status, 200, answer)
        do(runs[2], "move", {"first": True})
        do(runs[2], "move", {"before": runs[0]})  # is there already
        do(runs[2], "hold")                       # is held already
        self.ask("ada", "PATCH", f"/api/v1/runs/{runs[2]}", {"priority": "low"})
        do(runs[0], "move", {"behind": runs[1]})
        do(runs[1], "release")
        lines = [(line["run"], line["action"], line["detail"]) for line in reversed(self.audit())
                 if line["run"] and line["action"] != "create"]
        self.assertEqual(lines, [
            (runs[2], "move", 'place: "3" -> "1" of 3'),
            (runs[2], "update", 'priority: "normal" -> "low"'),
            (runs[0], "move", 'place: "1" -> "2" of 2'),
            (runs[1], "release", 'held: "true" -> "false"'),
        ])

    def test_an_experiment_is_a_line_and_so_is_each_of_its_runs(self):
        status, experiment = self.server.request(
            "POST", "/api/v1/experiments",
            {"displayName": "two", "runs": [{"spec": {**TINY, "steps": 1}}] * 2})
        self.assertEqual(status, 200, experiment)
        lines = [line for line in self.audit() if line.get("subject") == experiment["id"]]
        self.assertEqual([line["action"] for line in lines], ["create"] * 3)
        self.assertEqual(sum(line["run"] != "" for line in lines), 2)
        self.assertEqual(lines[2]["detail"], '"two": 2 runs')
        for run in experiment["runs"]:
            self.server.wait_for_state(run["id"], "SUCCEEDED")
        # How runs end by themselves is nobody's doing.
        self.assertEqual(len([line for line in self.audit()
                              if line.get("subject") == experiment["id"]]), 3)

    def test_pages_follow_one_another(self):
        run = self.server.create("a run", {**TINY, "steps": 1})
        for number in range(7):
            self.server.request("PATCH", f"/api/v1/runs/{run}", {"notes": str(number)})
        seen = []
        token = ""
        while True:
            answer = self.server.get(f"/api/v1/audit?page_size=3&page_token={token}")
            seen += [int(line["id"]) for line in answer["events"]]
            token = answer.get("nextPageToken")
            if not token:
                break
        self.assertEqual(seen, sorted(seen, reverse=True))
        self.assertEqual(len(seen), len(set(seen)))
        self.assertEqual(len(seen), len(self.audit()))
        status, _ = self.server.request("GET", "/api/v1/audit?page_token=x")
        self.assertEqual(status, 400)


if __name__ == "__main__":
    unittest.main()
