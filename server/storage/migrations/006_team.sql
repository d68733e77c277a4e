-- A machine that a team shares: what runs ask for and wait for, who may take how much, who did what.

-- Order of the queue: class (1 high, 0 normal, -1 low), then users by what they have used, then a
-- user's own runs by rank and id.
ALTER TABLE runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN queue_rank INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN held INTEGER NOT NULL DEFAULT 0;
-- The QUEUED runs, a user's together: put in order and counted without a look at the runs.
CREATE INDEX runs_in_queue ON runs (user_name, priority, queue_rank, id, held, state)
WHERE state = 1;
ALTER TABLE runs ADD COLUMN not_before INTEGER;  -- queued, but not started before this time
-- What it asks of its device; 0: what the server makes of it.
ALTER TABLE runs ADD COLUMN gpus INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN gpu_memory_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN exclusive INTEGER NOT NULL DEFAULT 0;
-- While it is told to stop by the server itself, why: what it becomes follows from it.
ALTER TABLE runs ADD COLUMN stop_cause TEXT NOT NULL DEFAULT ''
  CHECK (stop_cause IN ('', 'time', 'preempted', 'server', 'early'));
ALTER TABLE runs ADD COLUMN stop_detail TEXT NOT NULL DEFAULT '';
-- Since somebody last asked for it to be tried again: so often it was by itself, and the number of
-- its attempt up to then, from which its limits count.
ALTER TABLE runs ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN limits_from INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_not_before ON runs (not_before) WHERE not_before IS NOT NULL;

CREATE TABLE run_dependencies (
  run TEXT NOT NULL REFERENCES runs (id),
  after TEXT NOT NULL,         -- may have been deleted since; it counts as ended then
  condition TEXT NOT NULL CHECK (condition IN ('ok', 'any')),
  PRIMARY KEY (run, after)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_dependencies_by_after ON run_dependencies (after);

-- Memory of each GPU that an attempt may use; 0 on a CPU.
ALTER TABLE attempts ADD COLUMN gpu_memory_bytes INTEGER NOT NULL DEFAULT 0;
-- It held its devices for itself.
ALTER TABLE attempts ADD COLUMN exclusive INTEGER NOT NULL DEFAULT 0;

-- What users have used lately is added up from their attempts.
CREATE INDEX attempts_by_end ON attempts (end_time);

ALTER TABLE experiments ADD COLUMN sweep TEXT NOT NULL DEFAULT '';  -- proto3 JSON

-- Comparisons of a sweep's runs with their peers, each made once.
CREATE TABLE early_stops (
  run TEXT NOT NULL REFERENCES runs (id),
  step INTEGER NOT NULL,
  peers INTEGER NOT NULL,      -- that had come so far
  reason TEXT NOT NULL,        -- why it is stopped; empty: it went on
  pending INTEGER NOT NULL,    -- it is to be stopped and has not been told yet
  PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;

-- 0: no limit.
ALTER TABLE users ADD COLUMN max_running INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN max_queued INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN max_gpu_memory_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN remove_time INTEGER;  -- no token stands for it since

-- Who changed what.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  time INTEGER NOT NULL,
  user_name TEXT NOT NULL,     -- empty: the server itself
  origin TEXT NOT NULL,        -- the peer's address
  action TEXT NOT NULL,
  run TEXT NOT NULL DEFAULT '',
  subject TEXT NOT NULL DEFAULT '',  -- experiment, user or device
  detail TEXT NOT NULL DEFAULT '',
  owner TEXT NOT NULL DEFAULT ''     -- the user whose run, experiment or account it is
) STRICT;
CREATE INDEX audit_by_run ON audit (run) WHERE run <> '';
CREATE INDEX audit_by_user ON audit (user_name);
CREATE INDEX audit_by_owner ON audit (owner);

-- Devices that an admin took out of use.
CREATE TABLE drained_devices (
  device TEXT PRIMARY KEY,     -- id
  reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
