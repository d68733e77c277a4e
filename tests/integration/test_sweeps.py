"""Sweeps through every part: one call that makes all runs or none, their table, early stopping."""

import csv
import json
import pathlib
import re
import statistics
import tempfile
import unittest

from harness import TINY, ServerTest

FLAGS = ["--layers", "1", "--d-model", "8", "--heads", "2", "--vocab-size", "8",
         "--sequence-length", "4", "--batch-size", "2"]


class Sweeps(ServerTest):
    options = ("--cpu-slots", "1")

    def runs(self):
        return self.server.get("/api/v1/runs?page_size=1000").get("runs", [])

    def create(self, sweep, query="", **fields):
        return self.server.request("POST", f"/api/v1/experiments{query}",
                                   {"sweep": sweep, **fields})

    def test_a_watched_grid_ends_in_its_table_and_files(self):
        with tempfile.TemporaryDirectory() as out:
            shown = self.server.cli(
                "sweep", *FLAGS[2:], "--grid", "layers=1,2", "--grid", "learning_rate=1e-3:4e-3:log3",
                "--seeds", "3", "--steps", "12", "--experiment", "a grid", "--watch", "-o", out,
                "--json", check=0).stdout
            report = json.loads(shown.splitlines()[-1])
            with open(report["table"], newline="", encoding="utf-8") as file:
                table = {(row["layers"], row["learning_rate"]): row for row in csv.DictReader(file)}
            picture = pathlib.Path(report["svg"]).read_text()
            with open(report["csv"], newline="", encoding="utf-8") as file:
                self.assertEqual(sum(1 for _ in csv.reader(file)), 1 + 18 * 12)
        runs = self.runs()
        self.assertEqual(len(runs), 18)
        by_cell = {}
        for run in runs:
            self.assertEqual(run["state"], "STATE_SUCCEEDED", run["displayName"])
            spec = run["effectiveSpec"]
            self.assertEqual(run["displayName"], f"layers={spec['layers']} learning_rate="
                             f"{spec['learningRate']:g} seed={spec['seed']}")
            cell = (spec["layers"], f"{spec['learningRate']:g}")
            by_cell.setdefault(cell, []).append(run["summary"]["finalLoss"])
        self.assertEqual(set(by_cell), set(table))
        for cell, losses in by_cell.items():
            self.assertEqual(len(losses), 3)
            self.assertEqual(float(table[cell]["value"]), statistics.median(losses))
            self.assertEqual(float(table[cell]["low"]), min(losses))
        self.assertEqual(picture.count("</text>"), picture.count("<text"))
        for rate in ("0.001", "0.002", "0.004"):
            self.assertIn(f">{rate}</text>", picture)

    def test_all_runs_or_none(self):
        sweep = {"base": {**TINY, "steps": 5},
                 "axes": [{"setting": "heads", "values": ["1", "2", "3"]},
                          {"setting": "seed", "range": {"minimum": 1, "maximum": 50, "count": 50}}]}
        status, answer = self.create(sweep)
        self.assertEqual(status, 400)
        # Fifty runs have the same fault, which is told once.
        details = answer["error"]["details"]
        self.assertEqual([fault["field"] for fault in details], ["experiment.runs[100].spec.heads"])
        self.assertIn('run "heads=3 seed=1" and 49 others', details[0]["description"])
        sweep["axes"][0]["values"][1] = "two"
        status, answer = self.create(sweep)
        self.assertEqual([fault["field"] for fault in answer["error"]["details"]],
                         ["experiment.sweep.axes[0].values[1]"])
        self.assertEqual(self.runs(), [])
        self.assertEqual(self.server.get("/api/v1/experiments").get("experiments", []), [])

    def test_validating_shows_the_runs_and_stores_nothing(self):
        sweep = {"base": {**TINY, "steps": 5}, "samples": 6, "sampleSeed": "3",
                 "axes": [{"setting": "learning_rate",
                           "range": {"minimum": 1e-4, "maximum": 1e-2, "logarithmic": True}}]}
        status, answer = self.create(sweep, "?validate_only=true")
        self.assertEqual((status, len(answer["runs"])), (200, 6))
        self.assertFalse(any(run["id"] for run in answer["runs"]))
        self.assertEqual(self.runs(), [])
        # The same draws when it is meant.
        status, created = self.create(sweep)
        self.assertEqual(status, 200)
        self.assertEqual([run["displayName"] for run in created["runs"]],
                         [run["displayName"] for run in answer["runs"]])

    def test_an_experiment_knows_its_sweep_also_after_a_restart(self):
        sweep = {"base": {**TINY, "steps": "5"}, "list": [{"placement": "pre"}, {"placement": "post"}]}
        _, created = self.create(sweep, displayName="both")
        self.server.kill()
        self.server.start()
        read = self.server.get(f"/api/v1/experiments/{created['id']}")
        self.assertEqual(read["displayName"], "both")
        self.assertEqual([entry["placement"] for entry in read["sweep"]["list"]], ["pre", "post"])
        self.assertEqual([run["id"] for run in read["runs"]],
                         [run["id"] for run in created["runs"]])

    def test_a_run_that_does_worse_than_its_peers_is_stopped(self):
        # One at a time, in this order. The last would take minutes and learns nothing.
        entries = [{"learningRate": .01, "steps": 300, "seed": seed} for seed in (1, 2, 3)]
        entries.append({"learningRate": 1e-9, "steps": 3_000_000})
        with tempfile.TemporaryDirectory() as out:
            path = pathlib.Path(out) / "runs.jsonl"
            path.write_text("\n".join(map(json.dumps, entries)))
            shown = self.server.cli("sweep", *FLAGS, "--list", str(path), "--stop-at", "200",
                                    "--stop-above-quantile", "0.5", "--watch", "-o", out, "--json",
                                    check=0).stdout
        report = json.loads(shown.splitlines()[-1])
        self.assertEqual((report["stoppedEarly"], report["diverged"]), (1, 0))
        runs = sorted(self.runs(), key=lambda run: run["id"])
        self.assertEqual([run["state"] for run in runs],
                         ["STATE_SUCCEEDED"] * 3 + ["STATE_CANCELLED"])
        losses = [self.server.series(run["id"], "loss")[200] for run in runs]
        reason = re.fullmatch(r"stopped early at step 200: loss (\S+) is above the 0\.5 quantile, "
                              r"(\S+), of 3 peers", runs[3]["endReason"])
        self.assertIsNotNone(reason, runs[3]["endReason"])
        for shown, exact in zip(reason.groups(), (losses[3], statistics.median(losses[:3]))):
            self.assertLess(abs(float(shown) / exact - 1), 1e-5)
        self.assertLess(int(runs[3]["progress"]["step"]), 3_000_000)


if __name__ == "__main__":
    unittest.main(verbosity=2)
