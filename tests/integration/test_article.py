"""The founding experiment through every part: command line, server, trainers, store, files."""

import csv
import pathlib
import re
import tempfile
import unittest
from datetime import datetime

from harness import ServerTest

PUBLISHED = pathlib.Path(__file__).parent.parent / "parity" / "data" / "article_curves.csv"
PRE, POST, WARM = ("Pre-Norm · no warmup", "Post-Norm · no warmup", "Post-Norm · 120-step warmup")


def read_curves(path):
    """{run: {step: (loss, gradient norm, learning rate)}}, in the file's order."""
    curves = {}
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        assert next(reader) == ["run", "step", "loss", "gradient_norm", "learning_rate"]
        for run, step, *values in reader:
            curves.setdefault(run, {})[int(step)] = tuple(map(float, values))
    return curves


def time_of(text):
    # Nanoseconds or none: what datetime reads has six digits at most.
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text).replace("Z", "+00:00"))


class Article(ServerTest):
    def worst(self, ours, name, last, column):
        published = read_curves(PUBLISHED)[name]
        return max(abs(ours[name][s][column] / published[s][column] - 1)
                   for s in range(1, last + 1))

    def test_the_published_curves_come_out(self):
        with tempfile.TemporaryDirectory() as out:
            shown = self.server.cli("article", "--out", out, check=0, timeout=600).stdout
            ours = read_curves(f"{out}/article.csv")
            picture = pathlib.Path(out, "article.svg").read_text()
        self.assertEqual(list(ours), [PRE, POST, WARM])
        for name, curve in ours.items():
            self.assertEqual(list(curve), list(range(1, 181)), name)
            self.assertIn(name, picture)
            self.assertIn(name, shown)
        for name, last in ((PRE, 180), (WARM, 100), (POST, 8)):
            print(f"{name}: steps 1-{last}: loss within {self.worst(ours, name, last, 0):.1e}, "
                  f"gradient norm within {self.worst(ours, name, last, 1):.1e}; "
                  f"final loss {ours[name][180][0]:.5g}, "
                  f"largest norm {max(v[1] for v in ours[name].values()):.5g}")
        self.assertLess(self.worst(ours, PRE, 180, 0), 1e-3)
        self.assertLess(self.worst(ours, PRE, 180, 1), 1e-3)
        self.assertLess(self.worst(ours, WARM, 100, 0), 2e-3)
        self.assertLess(self.worst(ours, WARM, 100, 1), 2e-3)
        self.assertAlmostEqual(ours[WARM][180][0], .0174, delta=5e-4)
        self.assertLess(self.worst(ours, POST, 8, 0), 1e-2)
        self.assertLess(self.worst(ours, POST, 8, 1), 1e-2)
        # Chaotic from about step 12 on: the end is a band.
        self.assertGreater(ours[POST][180][0], 1)
        self.assertGreater(max(values[1] for values in ours[POST].values()), 1.5)
        published = read_curves(PUBLISHED)
        for name in ours:
            for step in range(1, 181):
                self.assertAlmostEqual(ours[name][step][2], published[name][step][2], delta=1e-9)
        self.check_side_by_side()

    def check_side_by_side(self):
        """Two runs at a time on two slots, and the third as soon as one of them has ended."""
        slots = len(self.server.get("/api/v1/devices")["devices"])
        runs = sorted(self.server.get("/api/v1/runs")["runs"], key=lambda run: run["id"])
        first, second, third = (
            (time_of(run["startTime"]), time_of(run["endTime"]), run["attempts"][0]["device"])
            for run in runs)
        for run in runs:
            self.assertEqual(run["effectiveSpec"]["threads"], "1")
            self.assertEqual(int(run["summary"]["parameterCount"]),
                             610_176 if run["spec"]["placement"] == "pre" else 610_048)
        if slots >= 2:
            self.assertLess(max(first[0], second[0]), min(first[1], second[1]), "side by side")
            self.assertNotEqual(first[2], second[2])
        if slots == 2:
            self.assertGreaterEqual(third[0], min(first[1], second[1]))

    def test_the_smoke_form(self):
        with tempfile.TemporaryDirectory() as out:
            self.server.cli("article", "--layers", "6", "--steps", "30", "--out", out, check=0)
            ours = read_curves(f"{out}/article.csv")
        self.assertEqual([len(curve) for curve in ours.values()], [30, 30, 30])
        self.assertEqual(list(ours), [PRE, POST, "Post-Norm · 20-step warmup"])
        rates = [values[2] for values in ours["Post-Norm · 20-step warmup"].values()]
        self.assertAlmostEqual(rates[0], 2e-3 / 20)
        self.assertAlmostEqual(rates[19], 2e-3)
        self.assertEqual(rates[20:], [2e-3] * 10)


if __name__ == "__main__":
    unittest.main(verbosity=2)
