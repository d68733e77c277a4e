"""A server's data folder with thousands of runs, each with what a real one leaves: its settings,
two attempts, their series, points and journals.
"""

import os
import sqlite3

from watch_load import load_harness

RUNS = 10_000
STEPS = 20
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def make(programs, data):
    """One run that real programs pause and resume; then copies of it, until there are RUNS."""
    harness = load_harness(programs.resolve())
    os.environ["NORMLAB_FAKE_ENGINE"] = "steps_per_second=20"
    server = harness.Server(data, "--trainer", harness.BIN / "normlab-fake-trainer").start()
    try:
        run = server.create("one of many", {**harness.TINY, "steps": STEPS})
        harness.wait_for(lambda: server.step(run) > 1, "some steps")
        server.request("POST", f"/api/v1/runs/{run}:pause")
        server.wait_for_state(run, "PAUSED")
        server.request("POST", f"/api/v1/runs/{run}:resume")
        server.wait_for_state(run, "SUCCEEDED")
    finally:
        server.stop()
        server.log.close()
        del os.environ["NORMLAB_FAKE_ENGINE"]
    multiply(data / "normlab.db", run)


def multiply(path, run):
    """Copies a run, which has ended, with everything that is its own, until there are RUNS."""
    database = sqlite3.connect(path)
    with database:
        database.execute("CREATE TEMP TABLE copies (run TEXT PRIMARY KEY) WITHOUT ROWID")
        database.executemany("INSERT INTO copies VALUES (?)", (
            (run[:20] + "".join(ALPHABET[n >> shift & 31] for shift in (25, 20, 15, 10, 5, 0)),)
            for n in range(RUNS - 1)))
        for table, key in (("runs", "id"), ("run_specs", "run"), ("run_settings", "run"),
                           ("attempts", "run")):
            copy_rows(database, table, key, run)
        attempts = ("JOIN attempts AS copy ON copy.number = attempts.number "
                    "AND copy.run IN (SELECT run FROM copies) WHERE attempts.run = ?")
        database.execute("INSERT INTO series (attempt, position, name) "
                         "SELECT copy.id, position, name FROM series "
                         f"JOIN attempts ON attempts.id = series.attempt {attempts}", (run,))
        database.execute("INSERT INTO journal SELECT copy.id, sequence, journal.last_step "
                         f"FROM journal JOIN attempts ON attempts.id = journal.attempt {attempts}",
                         (run,))
        database.execute(
            "INSERT INTO points SELECT its.id, step, value FROM points "
            "JOIN series ON series.id = points.series "
            f"JOIN attempts ON attempts.id = series.attempt {attempts.split(' WHERE')[0]} "
            "JOIN series AS its ON its.attempt = copy.id AND its.name = series.name "
            "WHERE attempts.run = ?", (run,))
    counted = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
               for table in ("runs", "attempts", "series", "points")]
    database.close()
    if counted[:2] != [RUNS, 2 * RUNS] or counted[3] < 3 * STEPS * RUNS:
        raise SystemExit(f"not what it should be: {counted}")


def copy_rows(database, table, key, run):
    """Rows of the run for each of the copies; what numbers them is numbered anew."""
    columns = [name for _, name, kind, _, _, is_key in database.execute(
        f"PRAGMA table_info({table})") if not (name == "id" and kind == "INTEGER" and is_key)]
    chosen = ", ".join("copies.run" if name == key else f"{table}.{name}" for name in columns)
    database.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) "
                     f"SELECT {chosen} FROM {table}, copies WHERE {table}.{key} = ?", (run,))
