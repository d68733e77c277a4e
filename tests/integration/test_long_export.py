"""A run of a million steps comes out of CSV and JSON lines whole, each number the same double.

What is exported is read as it comes and compared with the database row by row: neither is held.
"""

import contextlib
import csv
import itertools
import json
import os
import sqlite3
import unittest

from harness import BIN, TINY, ServerTest

STEPS = 1_000_000
SPIKE = 654_321
NAMES = ("loss", "gradient_norm", "learning_rate")


class LongExport(ServerTest):
    options = ("--trainer", BIN / "normlab-fake-trainer")

    def setUp(self):
        os.environ["NORMLAB_FAKE_ENGINE"] = f"spike_at={SPIKE}"
        self.addCleanup(os.environ.pop, "NORMLAB_FAKE_ENGINE", None)
        super().setUp()

    def stored(self, run, name):
        """(step, value) of a series of the run's one attempt, in order."""
        database = sqlite3.connect(f"file:{self.server.data_dir}/normlab.db?mode=ro", uri=True)
        with contextlib.closing(database):
            yield from database.execute(
                "SELECT step, value FROM points WHERE series = (SELECT series.id FROM series "
                "JOIN attempts ON attempts.id = series.attempt WHERE run = ? AND name = ?) "
                "ORDER BY step", (run, name))

    @contextlib.contextmanager
    def exported(self, run, *options):
        """What the command line prints, line by line; it must succeed."""
        process = self.server.cli_start("export", run, *options)
        try:
            yield process.stdout
            self.assertEqual(process.wait(60), 0, process.stderr.read())
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

    def check_csv(self, run):
        """How many rows came, each of which must be what is stored."""
        count = 0
        with self.exported(run) as lines:
            rows = csv.reader(lines)
            header = next(rows)
            places = [header.index(name) for name in NAMES]
            step = header.index("step")
            stored = zip(*(self.stored(run, name) for name in NAMES), strict=True)
            for row, points in zip(rows, stored, strict=True):
                found = [(int(row[step]), float(row[place])) for place in places]
                if found != list(points):
                    self.fail(f"row {count + 1} is {found} and {points} is stored")
                count += 1
        return count

    def check_lines(self, run):
        """How many steps came of each series, each of which must be what is stored."""
        stored = {name: self.stored(run, name) for name in NAMES}
        counts = dict.fromkeys(NAMES, 0)
        with self.exported(run, "--format", "jsonl") as lines:
            for line in lines:
                for name, column in json.loads(line)["columns"].items():
                    for step, value in zip(column["steps"], column["values"], strict=True):
                        point = next(stored[name], None)
                        if point != (step, value):
                            self.fail(f"{name}: {(step, value)} and {point} is stored")
                        counts[name] += 1
        for name, rest in stored.items():
            self.assertIsNone(next(rest, None), f"{name} has more points stored")
        return counts

    def test_a_million_steps_come_out_as_they_are_stored(self):
        run = self.server.create("a million steps", {**TINY, "steps": STEPS})
        self.server.wait_for_state(run, "SUCCEEDED", timeout=600)
        spike = next(itertools.islice(self.stored(run, "loss"), SPIKE - 1, None))
        self.assertEqual(spike, (SPIKE, 100 * (4 / SPIKE)))
        self.assertEqual(self.check_csv(run), STEPS)
        self.assertEqual(self.check_lines(run), dict.fromkeys(NAMES, STEPS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
