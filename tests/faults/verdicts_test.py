"""The fault suite's verdicts fail where they should: each is given what was tampered with."""

import math
import pathlib
import sqlite3
import tempfile
import unittest
import unittest.mock

import checks
from verdicts import Done, attempt_faults, end_faults
from watchers import Shown

BY_SIGNAL = "the trainer was ended by signal 9 (SIGKILL) after step 40; if nobody killed it, ..."
GAVE_UP = "interrupted 3 times in a row without coming further; the last time " + BY_SIGNAL


def run(state, reason="", attempts=()):
    return {"id": "r", "state": f"STATE_{state}", "endReason": reason, "attempts": [
        {"number": number + 1, **attempt} for number, attempt in enumerate(attempts)]}


class Ends(unittest.TestCase):
    def good(self, ended, on_interrupt, done):
        self.assertEqual(end_faults(ended, on_interrupt, done), [])

    def bad(self, ended, on_interrupt, done):
        self.assertEqual(len(end_faults(ended, on_interrupt, done)), 1)

    def test_success_is_always_right(self):
        for on_interrupt in ("resume", "requeue", "fail"):
            self.good(run("SUCCEEDED"), on_interrupt, Done(kills=5, cancelled=True))

    def test_only_one_that_somebody_cancelled_is_cancelled(self):
        self.good(run("CANCELLED"), "resume", Done(cancelled=True))
        self.bad(run("CANCELLED"), "resume", Done(kills=1))

    def test_a_kill_fails_only_those_that_asked_for_it(self):
        self.good(run("FAILED", BY_SIGNAL), "fail", Done(kills=1))
        self.bad(run("FAILED", BY_SIGNAL), "fail", Done())
        for on_interrupt in ("resume", "requeue"):
            self.bad(run("FAILED", BY_SIGNAL), on_interrupt, Done(kills=1))
            self.bad(run("FAILED", BY_SIGNAL), on_interrupt, Done(kills=5))

    def test_a_kill_is_no_excuse_for_another_fault(self):
        self.bad(run("FAILED", "cannot write step-20.checkpoint"), "fail", Done(kills=1))

    def test_three_kills_in_a_row_fail_any_run(self):
        for on_interrupt in ("resume", "requeue"):
            self.good(run("FAILED", GAVE_UP), on_interrupt, Done(kills=3))
            self.bad(run("FAILED", GAVE_UP), on_interrupt, Done(kills=2))
        self.bad(run("FAILED", GAVE_UP), "fail", Done(kills=3))
        self.bad(run("FAILED", GAVE_UP.replace("3", "2")), "resume", Done(kills=3))

    def test_no_other_end_is_right(self):
        for state in ("DIVERGED", "TIMED_OUT", "RUNNING", "PAUSED"):
            self.bad(run(state), "resume", Done(kills=3, cancelled=True))


class Attempts(unittest.TestCase):
    KILLED = {"endReason": BY_SIGNAL, "lastStep": "45", "checkpointStep": "40"}

    def faults(self, on_interrupt, *attempts, steps=100):
        return attempt_faults(run("SUCCEEDED", attempts=attempts), on_interrupt, steps)

    def test_fail_ends_with_the_attempt_that_was_killed(self):
        self.assertEqual(self.faults("fail", self.KILLED), [])
        self.assertEqual(len(self.faults("fail", self.KILLED, {})), 1)
        self.assertEqual(self.faults("fail", {"checkpointStep": "40"}, {"resumedFromStep": "40"}),
                         [], "paused and resumed")

    def test_requeue_begins_anew(self):
        self.assertEqual(self.faults("requeue", self.KILLED, {}), [])
        self.assertEqual(len(self.faults("requeue", self.KILLED, {"resumedFromStep": "40"})), 1)

    def test_resume_goes_on_from_the_latest_checkpoint(self):
        again = {"endReason": "the trainer was lost after step 41: ...", "resumedFromStep": "40"}
        self.assertEqual(self.faults("resume", self.KILLED, again, {"resumedFromStep": "40"}), [])
        for began in ("0", "20"):
            self.assertEqual(len(self.faults("resume", self.KILLED, {"resumedFromStep": began})), 1)
        self.assertEqual(len(self.faults("resume", self.KILLED, again, {})), 1)
        self.assertEqual(self.faults("resume", self.KILLED, {}, steps=40), [],
                         "the last checkpoint leaves nothing to do")


class Curves(unittest.TestCase):
    def faults(self, steps, values=None, done=4):
        values = [4 / step for step in steps] if values is None else values
        return checks.curve_faults("r", {"loss": {"steps": steps, "values": values}}, done)

    def test_each_step_once_and_in_order(self):
        self.assertEqual(self.faults([1, 2, 3, 4]), [])
        self.assertIn("step 2 behind step 2", self.faults([1, 2, 2, 3, 4])[0])
        self.assertIn("step 2 behind step 3", self.faults([1, 3, 2, 4])[0])

    def test_whole_and_with_the_values_that_were_reported(self):
        self.assertIn("lacks 1 steps", self.faults([1, 2, 4], done=None)[0])
        self.assertIn("4 steps were done", self.faults([1, 2, 3])[0])
        self.assertIn("wrong at [2]", self.faults([1, 2, 3, 4], [4, 3, 4 / 3, 1])[0])
        self.assertIn("4 steps and 3 values", self.faults([1, 2, 3, 4], [4, 2, 4 / 3])[0])

    def test_series_are_of_the_same_length(self):
        columns = {"loss": {"steps": [1, 2], "values": [4, 2]},
                   "gradient_norm": {"steps": [1], "values": [2]}}
        self.assertIn("different lengths", checks.curve_faults("r", columns, None)[0])


class ShownToAWatcher(unittest.TestCase):
    def test_each_step_once_and_in_order_but_for_what_was_shown_after_its_token(self):
        shown = Shown()

        def show(*steps):
            shown.add({"run": "r", "attempt": 1, "columns": {
                "loss": {"steps": list(steps), "values": [4 / step for step in steps]}}})
        show(1, 2)
        shown.note_token()
        show(3)
        shown.back_to_token()
        show(3, 4)
        self.assertEqual(shown.faults, [])
        show(4)
        self.assertIn("step 4 behind 4", shown.faults[0])
        shown.back_to_token()
        show(2)
        self.assertIn("step 2 behind 2", shown.faults[1])


class SlowReads(unittest.TestCase):
    def faults(self, counted, log):
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write(log)
            file.flush()
            server = unittest.mock.Mock(log=file)
            server.metric.return_value = counted
            return checks.slow_reads(server)

    def test_one_of_this_server_or_of_one_before_it(self):
        self.assertEqual(self.faults(0.0, "level=info msg=serving\n"), [])
        self.assertIn("1 reads", self.faults(1.0, "")[0])
        line = 'level=warning msg="a read took long" by=run_watch.cc:190 seconds=1.3'
        self.assertIn("run_watch.cc:190", self.faults(0.0, line + "\n")[0])


class Stored(unittest.TestCase):
    """The checks of a database, given one without keys that would refuse a doubled row."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = pathlib.Path(folder.name)
        self.points = [(1, step, 4 / step) for step in range(1, 65)]
        self.level = (1, 1, 0, 1, 64, 4.0, 4 / 64, 4 / 64, 4.0, 0)

    def stored(self):
        with sqlite3.connect(self.data / "normlab.db") as database:
            database.executescript("""
                CREATE TABLE attempts (id, run, number);
                CREATE TABLE series (id, attempt, name);
                CREATE TABLE points (series, step, value);
                CREATE TABLE levels (series, level, block, first_step, last_step, first_value,
                                     last_value, lowest, highest, non_finite);
                INSERT INTO attempts VALUES (1, 'r', 1);
                INSERT INTO series VALUES (1, 1, 'loss');""")
            database.executemany("INSERT INTO points VALUES (?, ?, ?)", self.points)
            database.execute("INSERT INTO levels VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self.level)
        database.close()
        return checks.Stored(self.data)

    def test_a_good_one_has_no_faults(self):
        self.assertEqual(self.stored().faults(), [])

    def test_a_doubled_point(self):
        self.points.append((1, 5, 4 / 5))
        self.assertIn("step 5", self.stored().faults()[0])

    def test_a_block_that_hides_a_spike(self):
        self.points[20] = (1, 21, 1e6)
        self.assertIn("block 0 of level 1", self.stored().faults()[0])

    def test_a_block_that_is_missing(self):
        self.points += [(1, step, 4 / step) for step in range(65, 129)]
        self.assertIn("1 blocks where 2", self.stored().faults()[0])

    def test_what_a_watcher_was_shown_is_there_with_its_value(self):
        shown, stored = Shown(), self.stored()
        shown.curves = {("r", 1, "loss"): {1: 4.0, 2: 2.0}}
        self.assertEqual(stored.missing("w", shown), [])
        for attempt, step, value in ((1, 2, 2.5), (1, 2, math.nan), (1, 65, 4 / 65), (2, 1, 4.0)):
            shown.curves = {("r", attempt, "loss"): {step: value}}
            self.assertIn(f"from step {step} on", stored.missing("w", shown)[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
