"""What must be true of a data folder after a round of faults, whatever the faults were.

Every check returns a list of sentences: what is wrong.
"""

import math
import os
import pathlib
import signal
import sqlite3


def expected_value(series, step):
    """What tests/fakes/fake_engine.cc reports, but for the learning rate."""
    if series == "loss":
        return 4 / step
    if series == "gradient_norm":
        return 4 / step / 2
    if series.startswith("extra/"):
        return step + int(series.removeprefix("extra/"))
    return None


FAN_OUT = 64  # points of a block of level 1, blocks of the next larger one


def block_of(steps, curve, size):
    """What the table of levels should have of `size` points; None when they are fewer."""
    if len(steps) != size:
        return None
    values = [curve[step] for step in steps]
    finite = [value for value in values if math.isfinite(value)]
    stored = [None if math.isnan(value) else value for value in (values[0], values[-1])]
    return [steps[0], steps[-1], *stored, min(finite, default=None), max(finite, default=None),
            size - len(finite)]


class Stored:
    """Everything in the database, read once: {(run, attempt, series): {step: value}}."""

    def __init__(self, data):
        database = sqlite3.connect(f"file:{data / 'normlab.db'}?mode=ro", uri=True)
        try:
            self.integrity = [row[0] for row in database.execute("PRAGMA integrity_check")]
            self.foreign_keys = database.execute("PRAGMA foreign_key_check").fetchall()
            self.curves, self.doubled = {}, []
            for run, attempt, name, step, value in database.execute(
                    "SELECT run, number, name, step, value FROM points "
                    "JOIN series ON series.id = points.series "
                    "JOIN attempts ON attempts.id = series.attempt"):
                curve = self.curves.setdefault((run, attempt, name), {})
                if step in curve:
                    self.doubled.append(f"step {step} of {(run, attempt, name)} is stored twice")
                curve[step] = math.nan if value is None else value
            self.levels = database.execute(
                "SELECT run, number, name, level, block, first_step, levels.last_step, first_value, "
                "last_value, lowest, highest, non_finite FROM levels "
                "JOIN series ON series.id = levels.series "
                "JOIN attempts ON attempts.id = series.attempt").fetchall()
        finally:
            database.close()

    def faults(self):
        found = [] if self.integrity == ["ok"] else [f"integrity_check: {self.integrity[:3]}"]
        if self.foreign_keys:
            found.append(f"foreign_key_check: {self.foreign_keys[:3]}")
        return found + self.doubled[:3] + self.level_faults()

    def level_faults(self):
        """Blocks that are not what their points say, and blocks that should be there."""
        found, counted = [], 0
        steps = {key: sorted(curve) for key, curve in self.curves.items()}
        for run, attempt, name, level, block, *row in self.levels:
            key = (run, attempt, name)
            size = FAN_OUT ** level
            inside = steps.get(key, [])[block * size:(block + 1) * size]
            if row != block_of(inside, self.curves.get(key, {}), size):
                found.append(f"{key}: block {block} of level {level} is {row}")
            counted += 1
        wanted = sum(len(curve) // FAN_OUT ** level for curve in self.curves.values()
                     for level in range(1, 11))
        if counted != wanted:
            found.append(f"{counted} blocks where {wanted} should be")
        return found[:3]

    def missing(self, watcher, shown):
        """Points that a watcher was shown and that are not here."""
        found = [f"{watcher}: {fault}" for fault in shown.faults[:3]]
        for key, curve in shown.curves.items():
            stored = self.curves.get(key, {})
            lost = [step for step, value in curve.items()
                    if step not in stored or stored[step] != value
                    and not (math.isnan(stored[step]) and math.isnan(value))]
            if lost:
                found.append(f"{watcher} was shown {len(lost)} points of {key} that are not stored "
                             f"so, from step {min(lost)} on")
        return found


def curve_faults(run, columns, steps):
    """Of a run's default curve (columns as the API gives them): each step once and in order, whole
    from step 1 on, each value its step's."""
    found = []
    for name, column in columns.items():
        if len(column["steps"]) != len(column["values"]):
            found.append(f"{run}: {name} has {len(column['steps'])} steps and "
                         f"{len(column['values'])} values")
        found += [f"{run}: {name} has step {after} behind step {before}"
                  for before, after in zip(column["steps"], column["steps"][1:])
                  if after <= before][:3]
    curves = {name: dict(zip(column["steps"], map(float, column["values"])))
              for name, column in columns.items()}
    lengths = {name: len(curve) for name, curve in curves.items()}
    for name, curve in curves.items():
        if sorted(curve) != list(range(1, len(curve) + 1)):
            holes = sorted(set(range(1, max(curve) + 1)) - set(curve))
            found.append(f"{run}: {name} lacks {len(holes)} steps from {holes[:1]} on")
        wrong = [step for step, value in curve.items()
                 if expected_value(name, step) not in (None, value)]
        if wrong:
            found.append(f"{run}: {name} is wrong at {wrong[:3]}")
    if len(set(lengths.values())) > 1:
        found.append(f"{run}: series of different lengths: {lengths}")
    if steps is not None and set(lengths.values()) != {steps}:
        found.append(f"{run}: {steps} steps were done and the curve has {lengths}")
    return found


def processes_with(marker):
    """{pid: first argument} of those whose environment holds the bytes, and that have not ended."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if marker in (entry / "environ").read_bytes():
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if state not in "ZX":
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().split(bytes(1))[0]
        except OSError:
            continue  # gone meanwhile, or somebody else's
    return found


def left_processes(data):
    """Processes of attempts of this data folder that are still there."""
    return [f"process {pid} is left: {name}" for pid, name
            in processes_with(f"NORMLAB_ATTEMPT_DIR={data}".encode()).items()]


def warm_processes(server):
    """Those that the server with that number keeps for attempts, or has left behind."""
    return sorted(processes_with(f"NORMLAB_ATTEMPT_DIR=warm:{server} ".encode()))


def left_warm(servers):
    return [f"process {pid} is left, which waited for attempts of server {server}"
            for server in servers for pid in warm_processes(server)]


def kill_left_processes(data):
    for entry in left_processes(data):
        os.kill(int(entry.split()[1]), signal.SIGKILL)


def slow_reads(server):
    """Reads by which a server itself has kept the log from beginning anew: how many the present one
    says it made, and what it and those before it logged."""
    counted = server.metric("normlab_slow_reads_total")
    lines = pathlib.Path(server.log.name).read_text(errors="replace").splitlines()
    logged = [line for line in lines if "a read took long" in line]
    return [f"{counted:.0f} reads took more than a second: {logged[:3]}"] if counted or logged else []


def left_spools(data):
    return [f"{spool} is left" for spool in (data / "attempts").glob("*/spool")]


def left_leases(server):
    return [f"{device['id']} is held by {device['run']}"
            for device in server.get("/api/v1/devices")["devices"] if device.get("run")]
