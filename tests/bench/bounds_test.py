"""The bounds of benchmarks that watch over more than a time: each fails on a report that it should."""

import copy
import unittest

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
        self.assertEqual(watch_load.faults_of(CROWD), [])
        self.assertEqual(watch_load.faults_of(CROWD, CROWD), [])

    def test_each_number_has_its_bound(self):
        for path, value, word in (
                (("ended",), False, "end"), (("slow_reads",), 1, "more than a second"),
                (("server_mib",), 200, "MiB"),
                (("grpc", "median_ms"), 20, "median"), (("http", "p99_ms"), 100, "p99"),
                (("grpc", "lost"), 1, "1 points lost"), (("http", "doubled"), 1, "1 doubled"),
                (("grpc", "faulty"), 1, "1 watchers broken"),
                (("grpc", "points"), 1000, "1000 points seen and not 1001"),
                (("http", "points"), 1002, "1002 points")):
            faults = watch_load.faults_of(changed(CROWD, *path, to=value))
            self.assertEqual(len(faults), 1, (path, faults))
            self.assertIn(word, faults[0])

    def test_watchers_that_saw_nothing_at_all_are_missed(self):
        nothing = dict.fromkeys(FACE, 0)
        self.assertIn("0 points seen", watch_load.faults_of(changed(CROWD, "http", to=nothing))[0])

    def test_a_face_without_watchers_has_no_bounds(self):
        report = changed(CROWD, "http", to=dict.fromkeys(FACE, 0))
        self.assertEqual(watch_load.faults_of(changed(report, "wanted", "http", to=0)), [])

    def test_stalled_readers_are_measured_by_the_crowd_without_them(self):
        beside = changed(CROWD, "grpc", "median_ms", to=14)
        self.assertEqual(watch_load.faults_of(beside, CROWD), [])
        beside = changed(CROWD, "grpc", "median_ms", to=16)
        self.assertIn("at most 15.0", watch_load.faults_of(beside, CROWD)[0])


if __name__ == "__main__":
    unittest.main(verbosity=2)
