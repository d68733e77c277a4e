"""Presets through every part: command line, server, trainers, store, table, files."""

import csv
import json
import pathlib
import tempfile
import unittest

from harness import ServerTest


def read_table(path):
    """{(row labels..., column): row} of a preset's table."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader)
        labels = header.index("value")
        return {tuple(line[:labels]): dict(zip(header, line)) for line in reader}


class Presets(ServerTest):
    def run_preset(self, *arguments, check=0):
        """The report, as --json prints it, with the table file that it names."""
        with tempfile.TemporaryDirectory() as out:
            shown = self.server.cli("preset", *arguments, "--json", "--out", out, check=check,
                                    timeout=600).stdout
            report = json.loads(shown.splitlines()[-1])
            self.assertEqual(report["event"], "report")
            table = read_table(report["table"])
            self.assertIn("<svg", pathlib.Path(report["svg"]).read_text())
            with open(report["csv"], newline="", encoding="utf-8") as file:
                self.assertEqual(next(csv.reader(file))[:3], ["run", "step", "loss"])
        return report, table

    def test_the_gradient_of_the_last_layer_at_three_depths(self):
        report, table = self.run_preset("init-gradients", "--only", "layers=1,2,6",
                                        "--only", "seed=1,2")
        self.assertEqual(len(self.server.get("/api/v1/runs")["runs"]), 2 * 3 * 2)
        for placement, values in (("pre", (.577, .504, .350)), ("post", (.584, .646, .875))):
            for layers, expected in zip(("1", "2", "6"), values):
                cell = table[placement, layers]
                print(f"{placement} {layers}: {float(cell['value']):.4f}, expected {expected}")
                self.assertAlmostEqual(float(cell["expected"]), expected)
                self.assertEqual((cell["runs"], cell["holds"]), ("2", "true"))
        # One depth from 6 on gives no slope.
        self.assertNotIn(("pre", "slope"), table)
        self.assertEqual((report["expectations"], report["broken"]), (6, 0))
        # Pre-Norm's block is nearer to the identity, and only there the way back keeps its size.
        paths = {path["run"]: path for path in report["identityPath"]}
        pre, post = (paths[f"{name} · 6 layers · seed 1"] for name in ("pre", "post"))
        self.assertLess(pre["distance"], post["distance"])
        self.assertLess(abs(pre["gain"] - 1), abs(post["gain"] - 1))

    def test_the_stream_of_some_placements(self):
        report, table = self.run_preset("stream-growth", "--only", "placement=pre,post,lns",
                                        "--only", "seed=1")
        blocks = [str(block) for block in range(1, 13)]
        pre, post = ([float(table[name, "flax", "1", block]["value"]) for block in blocks]
                     for name in ("pre", "post"))
        for block in range(1, 12):
            self.assertGreater(pre[block], pre[block - 1])
        for square in post:
            self.assertAlmostEqual(square, 1, delta=1e-3)
        self.assertEqual(report["broken"], 0)
        self.assertEqual(report["expectations"], 4)  # Pre-Norm also with scaled branches

    def test_a_part_of_depth_against_learning_rate(self):
        report, table = self.run_preset("depth-lr", "--only", "layers=2,6", "--only", "seed=1",
                                        "--only", "learning_rate=2e-3,8e-3")
        self.assertEqual(set(table), {(placement, layers, rate) for placement in ("pre", "post")
                                      for layers in ("2", "6") for rate in ("0.002", "0.008")})
        # Only Pre-Norm was measured elsewhere at these depths and rates.
        self.assertEqual((report["expectations"], report["broken"]), (4, 0))
        for (placement, layers, rate), cell in table.items():
            print(f"{placement} {layers} {rate}: {float(cell['value']):.4g}, {cell['expected']}")
            self.assertEqual(cell["holds"], "true" if placement == "pre" else "")
        for layers in ("2", "6"):
            self.assertLess(float(table["pre", layers, "0.008"]["value"]),
                            float(table["pre", layers, "0.002"]["value"]) / 10)
        shown = self.server.cli("preset", "depth-lr", "--experiment", self.experiment(),
                                "--out", self.folder.name, check=0).stdout
        self.assertIn("final loss by layers and learning_rate, placement post", shown)
        picture = (pathlib.Path(self.folder.name) / "depth-lr.svg").read_text()
        for cell in table.values():
            self.assertIn(f">{float(cell['value']):.4g}</text>", picture)

    def experiment(self):
        return self.server.get("/api/v1/experiments")["experiments"][0]["id"]

    def test_the_list_and_what_cannot_be_overridden(self):
        names = [json.loads(line)["name"] for line in
                 self.server.cli("preset", "--json", check=0).stdout.splitlines()]
        self.assertEqual(names, ["article", "init-gradients", "stream-growth", "placements",
                                 "warmup", "depth-lr", "text"])
        refused = self.server.cli("preset", "warmup", "--warmup-steps", "3", check=4).stderr
        self.assertIn("overrides.warmup_steps", refused)
        self.server.cli("preset", "warmup", "--only", "warmup_steps=3", check=2)
        self.assertEqual(self.server.get("/api/v1/runs")["runs"], [])

    def test_sizes_are_known_at_submit_and_stay(self):
        dry = json.loads(self.server.cli("submit", "--dry-run", "--json", check=0).stdout)
        self.assertEqual(dry["summary"]["parameterCount"], "610176")
        self.assertNotIn("id", dry)
        run = self.server.create("sized", {"steps": 3, "placement": "post"})
        ended = self.server.wait_for_state(run, "SUCCEEDED")
        self.assertEqual(ended["summary"]["parameterCount"], "610048")
        self.assertEqual(ended["summary"]["flopsPerStep"], dry["summary"]["flopsPerStep"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
