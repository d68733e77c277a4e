-- The first schema. Times are microseconds since 1970-01-01 UTC; states are the numbers of
-- normlab.v1.Run.State; specs are proto3 JSON, so that json_extract(spec, '$.layers') works.

CREATE TABLE meta (
  name TEXT PRIMARY KEY,   -- store_id; sequence: number of the latest write
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'admin')),
  create_time INTEGER NOT NULL
) STRICT;

CREATE TABLE tokens (
  sha256 TEXT PRIMARY KEY, -- of the token; the token itself is never stored
  user_id INTEGER NOT NULL REFERENCES users (id),
  purpose TEXT NOT NULL,   -- owner: the file in the data folder; browser: from a login code
  create_time INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE experiments (
  id TEXT PRIMARY KEY,     -- ULID
  display_name TEXT NOT NULL,
  preset TEXT NOT NULL,
  user_name TEXT NOT NULL,
  create_time INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  id TEXT PRIMARY KEY,     -- ULID
  display_name TEXT NOT NULL,
  experiment TEXT REFERENCES experiments (id),
  user_name TEXT NOT NULL,
  spec TEXT NOT NULL,
  effective_spec TEXT NOT NULL,
  device TEXT NOT NULL,    -- as asked for
  colour TEXT NOT NULL DEFAULT '',
  state INTEGER NOT NULL,
  wait_reason TEXT NOT NULL DEFAULT '',
  end_reason TEXT NOT NULL DEFAULT '',
  exit_code INTEGER,
  exit_signal INTEGER,
  create_time INTEGER NOT NULL,
  start_time INTEGER,
  end_time INTEGER,
  step INTEGER NOT NULL DEFAULT 0,
  steps INTEGER NOT NULL,
  final_loss REAL,
  min_loss REAL,
  final_gradient_norm REAL,
  max_gradient_norm REAL,
  first_bad_step INTEGER,
  parameter_count INTEGER,
  flops_per_step REAL,
  instruction_set TEXT NOT NULL DEFAULT '',
  changed_sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX runs_by_experiment ON runs (experiment) WHERE experiment IS NOT NULL;
CREATE INDEX runs_by_state ON runs (state);
CREATE INDEX runs_by_change ON runs (changed_sequence);

CREATE TABLE attempts (
  id INTEGER PRIMARY KEY,
  run TEXT NOT NULL REFERENCES runs (id),
  number INTEGER NOT NULL,
  device TEXT NOT NULL,    -- what it holds: cpu:0, or cpu:0,cpu:1
  directory TEXT NOT NULL, -- below the data folder
  token_sha256 TEXT NOT NULL,
  resumed_from_step INTEGER NOT NULL DEFAULT 0,
  start_time INTEGER NOT NULL,
  end_time INTEGER,
  last_step INTEGER NOT NULL DEFAULT 0,
  persisted_sequence INTEGER NOT NULL DEFAULT 0,  -- of the trainer's records
  outcome INTEGER NOT NULL DEFAULT 0,             -- normlab.worker.v1.Finished.Outcome
  outcome_reason TEXT NOT NULL DEFAULT '',
  shepherd_pid INTEGER,
  shepherd_start_ticks INTEGER,
  shepherd_boot_id TEXT,
  max_rss_bytes INTEGER,
  cpu_seconds REAL,
  started_sequence INTEGER NOT NULL,
  UNIQUE (run, number)
) STRICT;

CREATE TABLE series (
  id INTEGER PRIMARY KEY,
  attempt INTEGER NOT NULL REFERENCES attempts (id),
  position INTEGER NOT NULL,  -- the trainer's index
  name TEXT NOT NULL,
  UNIQUE (attempt, position),
  UNIQUE (attempt, name)
) STRICT;

-- NaN is NULL, the infinities are REAL infinities, a missing point is no row.
CREATE TABLE points (
  series INTEGER NOT NULL,
  step INTEGER NOT NULL,
  value REAL,
  PRIMARY KEY (series, step)
) STRICT, WITHOUT ROWID;

-- Up to which step an attempt had come when a write was done: a watcher that comes back with the
-- sequence of that write goes on behind that step.
CREATE TABLE journal (
  attempt INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  PRIMARY KEY (attempt, sequence)
) STRICT, WITHOUT ROWID;

-- For people: every point with its names.
CREATE VIEW curves AS
SELECT runs.id AS run, runs.display_name AS display_name, attempts.number AS attempt,
       series.name AS name, points.step AS step, points.value AS value
FROM points
JOIN series ON series.id = points.series
JOIN attempts ON attempts.id = series.attempt
JOIN runs ON runs.id = attempts.run;
