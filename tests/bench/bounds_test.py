"""The bounds of benchmarks that watch over more than a time can be missed: each fails on a report
that was tampered with."""

import copy
import json
import unittest

import answers
import ingest
import watch_load

FACE = {"points": 1001, "median_ms": 10, "p99_ms": 50, "lost": 0, "doubled": 0, "faulty": 0}
CROWD = {"ended": True, "wanted": {"grpc": 1001, "http": 1001}, "grpc": FACE, "http": dict(FACE),
         "server_mib": 60, "slow_reads": 0}


def changed(report, *path, to):
    """A copy with one number in it changed."""
    report = copy.deepcopy(report)
    place = report
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return report


class Crowd(unittest.TestCase):
    def test_a_good_one_has_no_faults(self):
        self.assertEqual(watch_load.faults_of([CROWD]), [])
        self.assertEqual(watch_load.faults_of([CROWD], [CROWD]), [])

    def test_each_number_has_its_bound(self):
        for path, value, word in (
                (("ended",), False, "end"), (("slow_reads",), 1, "more than a second"),
                (("server_mib",), 200, "MiB"),
                (("grpc", "median_ms"), 20, "median"), (("http", "p99_ms"), 100, "p99"),
                (("grpc", "lost"), 1, "1 points lost"), (("http", "doubled"), 1, "1 doubled"),
                (("grpc", "faulty"), 1, "1 watchers broken"),
                (("grpc", "points"), 1000, "1000 points seen and not 1001"),
                (("http", "points"), 1002, "1002 points")):
            faults = watch_load.faults_of([changed(CROWD, *path, to=value)])
            self.assertEqual(len(faults), 1, (path, faults))
            self.assertIn(word, faults[0])

    def test_times_are_medians_of_the_turns_and_what_was_lost_counts_in_each(self):
        slow, lossy = changed(CROWD, "grpc", "p99_ms", to=300), changed(CROWD, "http", "lost", to=1)
        self.assertEqual(watch_load.faults_of([CROWD, slow, CROWD]), [])
        self.assertIn("p99 300.0", watch_load.faults_of([slow, CROWD, slow])[0])
        self.assertIn("1 points lost", watch_load.faults_of([CROWD, lossy, CROWD])[0])

    def test_watchers_that_saw_nothing_at_all_are_missed(self):
        nothing = dict.fromkeys(FACE, 0)
        self.assertIn("0 points seen", watch_load.faults_of([changed(CROWD, "http", to=nothing)])[0])

    def test_a_face_without_watchers_has_no_bounds(self):
        report = changed(CROWD, "http", to=dict.fromkeys(FACE, 0))
        self.assertEqual(watch_load.faults_of([changed(report, "wanted", "http", to=0)]), [])

    def test_stalled_readers_are_measured_by_the_crowd_without_them(self):
        beside = changed(CROWD, "grpc", "median_ms", to=14)
        self.assertEqual(watch_load.faults_of([beside], [CROWD]), [])
        beside = changed(CROWD, "grpc", "median_ms", to=16)
        self.assertIn("at most 15.0", watch_load.faults_of([beside], [CROWD])[0])


def load(**changes):
    """A report of ingest_load's in which all is well."""
    return {"points": 576_000, "seconds": 5, "slow_reads": 0,
            "report_us": {"median": 5, "p99": 300}, "report_cpu_us": {"mean": 6, "p99": 9},
            "durable_ms": {"median": 3, "p99": 8},
            "memory_mb": [28, 60, 78, 79, 80, 80], "memory_while_full_mb": [], **changes}


class Load(unittest.TestCase):
    def faults(self, part, told):
        return ingest.rate_faults(part, told, wanted_points=576_000)

    def test_a_good_one_has_no_faults(self):
        for part in ingest.MOST_MEMORY:
            self.assertEqual(self.faults(part, load()), [])
            self.assertEqual(ingest.memory_faults(part, load(), whole=True), [])
            self.assertEqual(ingest.read_faults(part, load()), [])

    def test_points_that_were_never_made(self):
        self.assertEqual(len(self.faults("paced", load(points=575_999))), 1)

    def test_what_a_report_costs(self):
        for told in (load(report_us={"median": 11, "p99": 11}),
                     load(report_cpu_us={"mean": 11, "p99": 9}),
                     load(report_cpu_us={"mean": 6, "p99": 51})):
            self.assertEqual(len(self.faults("paced", told)), 1)

    def test_points_a_second_flat_out(self):
        self.assertEqual(len(self.faults("out", load(seconds=6))), 1)

    def test_the_others_wait_too_long_for_a_run_of_many_series(self):
        self.assertEqual(len(self.faults("fair", load(durable_ms={"median": 99, "p99": 501}))), 1)

    def test_memory_that_grows_on(self):
        growing = load(memory_mb=list(range(28, 88)))
        self.assertIn("19 MB in the last third", ingest.memory_faults("paced", growing, True)[0])
        self.assertEqual(ingest.memory_faults("paced", growing, whole=False), [])
        most = load(memory_mb=[28, 129, 28])
        self.assertIn("129 MB", ingest.memory_faults("paced", most, whole=True)[0])
        full = load(memory_while_full_mb=[190, 191, 199])
        self.assertIn("9 MB while the disk", ingest.memory_faults("away", full, whole=True)[0])

    def test_a_read_that_pinned_the_log(self):
        self.assertEqual(len(ingest.read_faults("out", load(slow_reads=1))), 1)

    def test_a_foreign_reader(self):
        gib = 1 << 30
        told = {"named": True, "well_seconds": 3.0, "log_bytes": [gib + 1000, gib + 9000]}
        self.assertEqual(ingest.pinned_faults(told), [])
        for change in ({"named": False}, {"well_seconds": 61.0},
                       {"log_bytes": [gib + (9 << 20)] * 2}, {"log_bytes": [gib - (9 << 20), gib]}):
            self.assertEqual(len(ingest.pinned_faults({**told, **change})), 1, change)


class Answers(unittest.TestCase):
    def curve(self, steps, spike=100 * (4 / answers.SPIKE)):
        values = [spike if step == answers.SPIKE else 4 / step for step in steps]
        return json.dumps({"columns": {"loss": {"steps": steps, "values": values}}}).encode()

    def test_pages_of_the_list(self):
        page = {"runs": [{"id": "a", "attempts": [{"number": 1}]}] * 50}
        self.assertEqual(answers.list_faults(50, json.dumps(page)), [])
        self.assertEqual(len(answers.list_faults(200, json.dumps(page))), 1)
        self.assertEqual(len(answers.list_faults(50, json.dumps({"runs": [{"id": "a"}] * 50}))), 1)

    def test_the_curve_with_the_spike(self):
        steps = sorted([*range(1, answers.STEPS, 2048), answers.SPIKE])
        good = self.curve(steps)
        self.assertEqual(answers.curve_faults([good, good]), [])
        self.assertIn("2 different", answers.curve_faults([good, good + b" "])[0])
        self.assertIn("spike", answers.curve_faults([self.curve(steps, spike=0.1)])[0])
        steps.remove(answers.SPIKE)
        self.assertIn("spike", answers.curve_faults([self.curve(steps)])[0])
        few = sorted([*range(1, answers.STEPS, 4096), answers.SPIKE])
        self.assertIn("points are drawn", answers.curve_faults([self.curve(few)])[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
