"""Every point that is stored comes out again, as the same double."""

import csv
import io
import json
import math
import os
import sqlite3
import unittest

from harness import BIN, TINY, ServerTest

LONG = 30_000  # steps: several pages of points


class Export(ServerTest):
    options = ("--trainer", BIN / "normlab-fake-trainer")

    def script(self, text):
        os.environ["NORMLAB_FAKE_ENGINE"] = text
        self.addCleanup(os.environ.pop, "NORMLAB_FAKE_ENGINE", None)

    def setUp(self):
        self.script("")
        super().setUp()

    def stored(self, run):
        """{(attempt, name): {step: value}}, as sqlite3 shows it; NaN is NULL there."""
        database = sqlite3.connect(f"file:{self.server.data_dir}/normlab.db?mode=ro", uri=True)
        self.addCleanup(database.close)
        found = {}
        for attempt, name, step, value in database.execute(
                "SELECT attempt, name, step, value FROM curves WHERE run = ?", (run,)):
            found.setdefault((attempt, name), {})[step] = repr(math.nan if value is None
                                                              else float(value))
        return found

    def exported_csv(self, run, *options):
        text = self.server.cli("export", run, *options).stdout
        found = {}
        for row in csv.DictReader(io.StringIO(text)):
            attempt, step = int(row.pop("attempt", 1)), int(row.pop("step"))
            row.pop("run")
            for name, cell in row.items():
                if cell != "":
                    column = found.setdefault((attempt, name), {})
                    self.assertNotIn(step, column)
                    column[step] = repr(float(cell))
        return found

    def exported_lines(self, run, *options):
        found = {}
        for line in self.server.cli("export", run, "--format", "jsonl",
                                    *options).stdout.splitlines():
            piece = json.loads(line)
            self.assertEqual(piece["run"], run)
            for name, column in piece["columns"].items():
                known = found.setdefault((piece["attempt"], name), {})
                for step, value in zip(column["steps"], column["values"], strict=True):
                    self.assertNotIn(step, known)
                    known[step] = repr(float(value))
        return found

    def test_a_long_run_comes_out_whole(self):
        run = self.server.create("long", {**TINY, "steps": LONG})
        self.server.wait_for_state(run, "SUCCEEDED")
        stored = self.stored(run)
        self.assertEqual(len(stored[1, "loss"]), LONG)
        self.assertEqual(self.exported_csv(run), stored)
        self.assertEqual(self.exported_lines(run), stored)

    def test_all_attempts_come_with_what_is_not_in_the_curve(self):
        self.script("steps_per_second=200,nan_at=7,plus_inf_at=9,missing_at=11")
        self.server.stop()
        self.server.start()
        run = self.server.create("two attempts", {**TINY, "steps": 300, "stopOnNonFinite": False})
        self.server.wait_for_state(run, "RUNNING")
        self.server.cli("pause", run)
        self.server.wait_for_state(run, "PAUSED")
        self.server.cli("resume", run)
        self.server.wait_for_state(run, "SUCCEEDED")
        stored = self.stored(run)
        self.assertEqual({attempt for attempt, _ in stored}, {1, 2})
        self.assertEqual(self.exported_csv(run, "--attempts", "all"), stored)
        self.assertEqual(self.exported_lines(run, "--attempts", "all"), stored)
        for attempt in (1, 2):
            answer = self.server.get(f"/api/v1/runs/{run}/series?names=loss&attempt={attempt}")
            column = answer["columns"]["loss"]
            self.assertEqual({step: repr(float(value)) for step, value
                              in zip(column["steps"], column["values"], strict=True)},
                             stored[attempt, "loss"])
        status, text = self.server.request("GET", f"/api/v1/runs/{run}/series?attempt=3")
        self.assertEqual((status, "no attempt 3" in str(text)), (404, True))
        status, text = self.server.request("GET", f"/api/v1/runs/{run}/series?max_points=4")
        self.assertEqual((status, "max_points" in str(text)), (400, True))


if __name__ == "__main__":
    unittest.main()
