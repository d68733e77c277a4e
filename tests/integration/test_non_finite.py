"""NaN, +Infinity, -Infinity and no value are four different things on every way to a reader."""

import csv
import io
import json
import math
import os
import sqlite3
import unittest

from harness import BIN, TINY, ServerTest

SERIES = ("loss", "gradient_norm")
STEPS = 12
NAN_AT, PLUS_AT, MINUS_AT, MISSING_AT, GRADIENT_NAN_AT = 4, 6, 8, 10, 11
SCRIPT = (f"nan_at={NAN_AT},plus_inf_at={PLUS_AT},minus_inf_at={MINUS_AT},"
          f"missing_at={MISSING_AT},gradient_nan_at={GRADIENT_NAN_AT}")


def scripted_loss(step):
    special = {NAN_AT: math.nan, PLUS_AT: math.inf, MINUS_AT: -math.inf}
    return special.get(step, 4 / step)


def scripted(name):
    """{step: value} as the trainer reported it; a step without a value is not in it."""
    if name == "loss":
        return {s: scripted_loss(s) for s in range(1, STEPS + 1) if s != MISSING_AT}
    return {s: math.nan if s == GRADIENT_NAN_AT else scripted_loss(s) / 2
            for s in range(1, STEPS + 1)}


def words(values):
    """Exactly comparable, which NaN is not; and told apart from text: JSON has no such numbers."""
    return {step: value if isinstance(value, str) else repr(float(value))
            for step, value in values.items()}


SPELT = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def as_json(name):
    """As `words`, where what is not finite is one of JSON's strings."""
    return {step: SPELT.get(word, word) for step, word in words(scripted(name)).items()}


def points_of(events):
    """{series: {step: value as it was written}} of points in the encoding that all JSON has."""
    found = {name: {} for name in SERIES}
    for event in events:
        for name in SERIES:
            column = event["columns"].get(name, {"steps": [], "values": []})
            for step, value in zip(column["steps"], column["values"], strict=True):
                assert step not in found[name], f"{name} of step {step} comes twice"
                found[name][step] = value
    return found


class NonFinite(ServerTest):
    options = ("--trainer", BIN / "normlab-fake-trainer")

    def setUp(self):
        os.environ["NORMLAB_FAKE_ENGINE"] = SCRIPT
        self.addCleanup(os.environ.pop, "NORMLAB_FAKE_ENGINE")
        super().setUp()

    def submit(self, **settings):
        return self.server.create("four things", {**TINY, "steps": STEPS, **settings})

    def check(self, found, expect=as_json):
        for name in SERIES:
            self.assertEqual(words(found[name]), expect(name), name)

    def test_all_ways_tell_the_four_apart(self):
        self.run_id = self.submit(stopOnNonFinite=False)
        self.server.wait_for_state(self.run_id, "SUCCEEDED", "FAILED", "DIVERGED")
        self.assertEqual(self.server.state(self.run_id), "SUCCEEDED")
        for way in (self.database, self.series_answer, self.event_stream, self.grpc_watch,
                    self.csv_export, self.json_lines_export, self.summary):
            with self.subTest(way=way.__name__):
                way()

    def database(self):
        """NULL, 9e999, -9e999 and no row."""
        database = sqlite3.connect(f"file:{self.server.data_dir}/normlab.db?mode=ro", uri=True)
        self.addCleanup(database.close)
        for name in SERIES:
            rows = database.execute(
                "SELECT step, value FROM curves WHERE run = ? AND name = ? ORDER BY step",
                (self.run_id, name)).fetchall()
            self.assertEqual(words({step: math.nan if value is None else value
                                    for step, value in rows}), words(scripted(name)))

    def series_answer(self):
        answer = self.server.get(
            f"/api/v1/runs/{self.run_id}/series?names={','.join(SERIES)}&max_points=1000")
        self.check(points_of([answer]))
        loss, gradient = (answer["columns"][name] for name in SERIES)
        self.assertEqual((loss["totalPoints"], loss["nonFinitePoints"],
                          loss["firstNonFiniteStep"]), (STEPS - 1, 3, NAN_AT))
        self.assertEqual((gradient["totalPoints"], gradient["nonFinitePoints"],
                          gradient["firstNonFiniteStep"]), (STEPS, 4, NAN_AT))

    def event_stream(self):
        status, text = self.server.request("GET", f"/api/v1/events?runs={self.run_id}")
        self.assertEqual(status, 200)
        events = [dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
                  for block in text.decode().split("\n\n") if block.strip()]
        self.check(points_of(json.loads(event["data"]) for event in events
                             if event.get("event") == "points"))

    def grpc_watch(self):
        """The command line speaks gRPC, where values are doubles."""
        lines = self.server.cli("watch", self.run_id, "--json", check=0).stdout.splitlines()
        events = [json.loads(line) for line in lines]
        self.check(points_of(event for event in events if event["event"] == "points"))

    def csv_export(self):
        text = self.server.cli("export", self.run_id, "--format", "csv", check=0).stdout
        rows = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual([int(row["step"]) for row in rows], list(range(1, STEPS + 1)))
        for name in SERIES:
            cells = {int(row["step"]): row[name] for row in rows if row[name] != ""}
            values = {step: cell if cell in SPELT.values() else float(cell)
                      for step, cell in cells.items()}
            self.assertEqual(words(values), as_json(name), name)

    def json_lines_export(self):
        text = self.server.cli("export", self.run_id, "--format", "jsonl", check=0).stdout
        self.check(points_of(json.loads(line) for line in text.splitlines()))

    def summary(self):
        """Where the finite numbers are looked for, the others are not in the way."""
        shown = json.loads(self.server.cli("show", self.run_id, "--json", check=0).stdout)
        summary = shown["summary"]
        self.assertEqual(int(summary["firstBadStep"]), NAN_AT)
        self.assertEqual(summary["finalLoss"], 4 / STEPS)
        self.assertEqual(summary["minLoss"], 4 / STEPS)
        self.assertEqual(summary["maxGradientNorm"], "Infinity")

    def test_a_run_that_stops_there_says_which_it_was(self):
        for script, reason, loss in (
                (f"nan_at={NAN_AT}", "loss is NaN at step 4", "NaN"),
                (f"plus_inf_at={PLUS_AT}", "loss is Infinity at step 6", "Infinity"),
                (f"minus_inf_at={MINUS_AT}", "loss is -Infinity at step 8", "-Infinity"),
                (f"gradient_nan_at={GRADIENT_NAN_AT}", "gradient norm is NaN at step 11", 4 / 11)):
            with self.subTest(script):
                self.server.stop()
                os.environ["NORMLAB_FAKE_ENGINE"] = script
                self.server.start()
                run = self.server.wait_for_state(self.submit(), "DIVERGED", "SUCCEEDED", "FAILED")
                self.assertEqual((run["state"], run["endReason"]), ("STATE_DIVERGED", reason))
                self.assertEqual(run["summary"]["finalLoss"], loss)
                shown = json.loads(self.server.cli("show", run["id"], "--json", check=0).stdout)
                self.assertEqual(shown["summary"]["finalLoss"], loss)


if __name__ == "__main__":
    unittest.main(verbosity=2)
