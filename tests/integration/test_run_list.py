"""Runs are listed by filter and order, described, deleted and pruned; over HTTP and gRPC (CLI)."""

import contextlib
import json
import os
import sqlite3
import unittest
import urllib.parse

from harness import BIN, TINY, ServerTest, wait_for


class RunList(ServerTest):
    options = ("--trainer", BIN / "normlab-fake-trainer")

    def setUp(self):
        os.environ["NORMLAB_FAKE_ENGINE"] = "steps_per_second=200"
        self.addCleanup(os.environ.pop, "NORMLAB_FAKE_ENGINE")
        super().setUp()

    def query(self, **parameters):
        return "/api/v1/runs?" + urllib.parse.urlencode(parameters)

    def names(self, **parameters):
        return [run["displayName"] for run in self.server.get(self.query(**parameters))["runs"]]

    def violation(self, **parameters):
        """(field, description) of the one fault."""
        status, answer = self.server.request("GET", self.query(**parameters))
        self.assertEqual((status, answer["error"]["status"]), (400, "INVALID_ARGUMENT"), answer)
        (detail,) = answer["error"]["details"]
        return detail["field"], detail["description"]

    def ended(self, name, **spec):
        run = self.server.create(name, {**TINY, "steps": 20, **spec})
        self.server.wait_for_state(run, "SUCCEEDED", "FAILED")
        self.assertEqual(self.server.state(run), "SUCCEEDED")
        return run

    def patch(self, run, **fields):
        status, answer = self.server.request("PATCH", f"/api/v1/runs/{run}", fields)
        self.assertEqual(status, 200, answer)
        return answer

    def delete(self, run):
        status, answer = self.server.request("DELETE", f"/api/v1/runs/{run}")
        return answer["error"]["status"] if status != 200 else None

    def database(self):
        return contextlib.closing(
            sqlite3.connect(f"file:{self.server.data_dir}/normlab.db?mode=ro", uri=True))

    def points_left(self):
        with self.database() as database:
            return [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                    for table in ("points", "levels", "garbage", "attempts", "run_settings")]

    def test_filters_orders_and_pages(self):
        for i, layers in enumerate((1, 2, 3, 2, 1)):
            self.ended(f"run {i}", layers=layers, seed=i)
        self.assertEqual(self.names(filter="layers=2"), ["run 3", "run 1"])
        self.assertEqual(self.names(filter="layers>=2 seed<3", order_by="seed"), ["run 1", "run 2"])
        self.assertEqual(self.names(filter="\"RUN 4\" OR seed=0"), ["run 4", "run 0"])
        self.assertEqual(self.names(filter="state=succeeded NOT loss:*"), [])
        self.assertEqual(self.names(order_by="layers desc, seed", page_size=2), ["run 2", "run 1"])
        self.assertEqual(self.violation(filter="a lr=3")[0], "filter")
        self.assertIn("did you mean learning_rate?", self.violation(filter="a lr=3")[1])
        self.assertEqual(self.violation(order_by="label")[0], "order_by")
        first = self.server.get(self.query(order_by="final_loss", page_size=2))
        self.assertEqual(int(first["totalSize"]), 5)
        self.ended("late")
        seen, page = [run["id"] for run in first["runs"]], first
        while page["nextPageToken"]:
            page = self.server.get(self.query(order_by="final_loss", page_size=2,
                                              page_token=page["nextPageToken"]))
            seen += [run["id"] for run in page["runs"]]
        self.assertEqual(len(seen), len(set(seen)), "each once")
        self.assertGreaterEqual(len(seen), 5)
        self.assertEqual(self.violation(order_by="seed", page_token=first["nextPageToken"])[0],
                         "page_token")
        listed = self.server.cli("ls", "layers=2", "--order-by", "seed desc", "--json", check=0)
        self.assertEqual([json.loads(line)["displayName"] for line in listed.stdout.splitlines()],
                         ["run 3", "run 1"])
        listed = self.server.cli("ls", "--state", "succeeded", "layers=3", "--json", check=0)
        self.assertEqual([json.loads(line)["displayName"] for line in listed.stdout.splitlines()],
                         ["run 2"])
        refused = self.server.cli("ls", "lr<3", check=4)
        self.assertIn("did you mean learning_rate?", refused.stderr)

    def test_words_are_kept_and_found_again(self):
        run = self.ended("plain")
        self.server.cli("rename", "plain", "better name", check=0)
        self.server.cli("label", run, "+best", "--add", "-odd", "+draft", check=0)
        self.server.cli("label", run, "-draft", check=0)
        self.server.cli("note", run, "two\nlines", check=0)
        self.server.cli("pin", run, check=0)
        self.server.cli("archive", "better name", check=0)
        found = self.server.run(run)
        self.assertEqual((found["displayName"], found["labels"], found["notes"], found["pinned"],
                          found["archived"]), ("better name", ["-odd", "best"], "two\nlines", True,
                                               True))
        self.assertEqual(self.names(), [])
        self.assertEqual(self.names(filter="archived=true label=best lines"), ["better name"])
        self.assertIn("best", self.server.cli("ls", "archived:*", check=0).stdout)
        self.patch(run, archived=False, notes="")
        self.assertEqual(self.names(filter='notes=""'), ["better name"])
        for fields, field in (({"labels": ["a", "a"]}, "labels[1]"), ({"labels": [""]}, "labels[0]"),
                              ({"notes": "x" * 10_001}, "notes"), ({"state": 7}, "update_mask"),
                              ({"displayName": ""}, "display_name"), ({}, "update_mask")):
            status, answer = self.server.request("PATCH", f"/api/v1/runs/{run}", fields)
            self.assertEqual(status, 400, answer)
            self.assertEqual(answer["error"]["details"][0]["field"], field)

    def test_a_deleted_run_leaves_nothing(self):
        run, kept = self.ended("gone", keepCheckpoints=2, checkpointEvery=5), self.ended("kept")
        live = self.server.create("live", {**TINY, "steps": 1_000_000})
        self.patch(kept, pinned=True)
        self.assertEqual(self.delete(kept), "FAILED_PRECONDITION")
        self.assertEqual(self.delete(live), "FAILED_PRECONDITION")
        self.server.wait_for_state(live, "RUNNING")
        self.assertEqual(self.delete(live), "FAILED_PRECONDITION")
        self.assertIn("add --yes", self.server.cli("rm", run, check=4).stderr)
        self.server.cli("rm", run, "--yes", check=0)
        self.assertEqual(self.server.request("GET", f"/api/v1/runs/{run}")[0], 404)
        self.assertEqual(self.delete(run), "NOT_FOUND")
        for folder in ("runs", "attempts"):
            left = [entry for entry in os.listdir(self.server.data_dir / folder)
                    if entry.startswith(run)]
            self.assertEqual(left, [])
        wait_for(lambda: self.points_left()[2] == 0, "the points to go")
        with self.database() as database:
            statements = [line for line in database.iterdump() if run in line]
        audit = [line for line in statements if line.startswith('INSERT INTO "audit"')]
        self.assertEqual(len(audit), 2, "its making and its deletion")
        self.assertEqual(len(statements), 3, "besides them the tombstone only")

    def test_what_a_deletion_left_goes_after_a_restart(self):
        run = self.ended("gone", checkpointEvery=5)
        before = self.server.data_dir / "runs" / run
        self.assertTrue(before.exists())
        self.assertEqual(self.delete(run), None)
        self.server.kill()
        before.mkdir()  # as if the server had died before it removed the files
        (self.server.data_dir / "attempts" / f"{run}-1").mkdir()
        self.server.start()
        wait_for(lambda: self.points_left()[:3] == [0, 0, 0], "the points to go")
        wait_for(lambda: not before.exists(), "the checkpoints to go")
        wait_for(lambda: not (self.server.data_dir / "attempts" / f"{run}-1").exists(), "the logs")

    def test_prune_by_a_rule(self):
        runs = [self.ended(f"run {i}", seed=i, checkpointEvery=5) for i in range(4)]
        self.patch(runs[0], pinned=True)
        self.assertIn("say which runs", self.server.cli("prune", check=2).stderr)
        looked = json.loads(self.server.cli("prune", "seed<3", "--dry-run", "--json", check=0).stdout)
        self.assertEqual((looked["runs"], looked["kept"]), ("2", "1"))
        self.assertGreater(int(looked["fileBytes"]), 0)
        self.assertEqual(len(self.names()), 4)
        none = json.loads(self.server.cli("prune", "--older-than", "1d", "--yes", "--json",
                                          check=0).stdout)
        self.assertEqual(none.get("runs", "0"), "0")
        self.server.cli("prune", "seed=3", "--checkpoints", "--yes", check=0)
        checkpoints = self.server.data_dir / "runs" / runs[3] / "checkpoints"
        self.assertFalse(checkpoints.exists())
        self.assertEqual(int(self.server.run(runs[3])["attempts"][0]["checkpointStep"]), 0)
        self.assertEqual(len(self.server.series(runs[3], "loss")), 20)
        self.server.cli("prune", "seed<3", "--yes", check=0)
        self.assertEqual(self.names(), ["run 3", "run 0"])

    def test_weights_taken_from_a_deleted_run_stay(self):
        first = self.ended("first", checkpointEvery=5)
        second = self.server.create("second", {**TINY, "steps": 5, "initFrom": "first"})
        self.assertEqual(self.delete(first), None)
        self.assertTrue((self.server.data_dir / "runs" / second / "init.safetensors").exists())
        self.server.wait_for_state(second, "SUCCEEDED", "FAILED", "CANCELLED", "DIVERGED")


if __name__ == "__main__":
    unittest.main(verbosity=2)
