-- A database as normlab had them when its schema was number 2: the schema as released, and rows.
-- Never changed: it is what somebody may still have.

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

-- Pausing and resuming: the latest checkpoint of each attempt, by which the next one goes on. Files
-- are in runs/RUN/checkpoints below the data folder. And two numbers more for tables of runs.

ALTER TABLE attempts ADD COLUMN checkpoint_step INTEGER NOT NULL DEFAULT 0;   -- 0: there is none
ALTER TABLE attempts ADD COLUMN checkpoint_file TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN checkpoint_bytes INTEGER NOT NULL DEFAULT 0;

ALTER TABLE runs ADD COLUMN memory_bytes REAL;     -- estimated from the settings
ALTER TABLE runs ADD COLUMN validation_loss REAL;  -- the latest

CREATE INDEX runs_by_name ON runs (display_name);  -- a run may be named where weights come from

PRAGMA user_version = 2;

INSERT INTO meta (name, value) VALUES
  ('store_id', '0123456789ab'),
  ('sequence', 40);

INSERT INTO users (id, name, role, create_time) VALUES
  (1, 'lab1', 'admin', 1767225600000000),
  (2, 'guest', 'viewer', 1767225600000001);

INSERT INTO tokens (sha256, user_id, purpose, create_time) VALUES
  ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 1, 'owner', 1767225600000000),
  ('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 2, 'browser', 1767225600000002);

INSERT INTO experiments (id, display_name, preset, user_name, create_time) VALUES
  ('01J0000000000000000000000E', 'where the norm goes', 'article', 'lab1', 1767225600000000);

INSERT INTO runs (id, display_name, experiment, user_name, spec, effective_spec, device, colour, state, wait_reason, end_reason, exit_code, exit_signal, create_time, start_time, end_time, step, steps, final_loss, min_loss, final_gradient_norm, max_gradient_norm, first_bad_step, parameter_count, flops_per_step, instruction_set, changed_sequence) VALUES
  ('01J00000000000000000000001', 'done, "quoted" <b>', '01J0000000000000000000000E', 'lab1', '{"layers": 2, "placement": "post"}', '{"layers": 2, "learningRate": 0.001, "placement": "post", "steps": 200, "seed": "1", "dropout": 0}', 'auto', '#4269d0', 7, '', '', 0, NULL, 1767225600001000, 1767225600000010, 1767225600000020, 200, 200, 0.0025, 0.0025, 2.0, 2.0, NULL, 1234, 5000000.0, 'avx2', 12),
  ('01J00000000000000000000002', 'diverged', '01J0000000000000000000000E', 'lab1', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}', 'auto', '', 10, '', 'the loss is NaN at step 3', 5, NULL, 1767225600002000, 1767225600000011, 1767225600000021, 3, 200, NULL, 4.25, 9e999, 9e999, 2, 1234, NULL, '', 15),
  ('01J00000000000000000000003', 'queued', NULL, 'lab1', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}', 'auto', '', 1, 'waits for a device', '', NULL, NULL, 1767225600003000, NULL, NULL, 0, 200, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', 16),
  ('01J00000000000000000000004', 'cancelled', NULL, 'lab1', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}', 'auto', '', 9, '', 'cancelled by lab1', NULL, NULL, 1767225600004000, NULL, 1767225600000030, 0, 200, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', 17),
  ('01J00000000000000000000005', 'failed', NULL, 'lab1', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}', 'auto', '', 8, '', 'ended by signal 9 (SIGKILL)', NULL, 9, 1767225600005000, 1767225600000012, 1767225600000022, 1, 200, 3.5, 3.5, NULL, NULL, NULL, NULL, NULL, '', 20),
  ('01J00000000000000000000006', 'running', NULL, 'lab1', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 1000, "seed": "1", "dropout": 0}', 'auto', '', 3, '', '', NULL, NULL, 1767225600006000, 1767225600000013, NULL, 5, 1000, 2.5, 2.5, NULL, NULL, NULL, 99, NULL, '', 30),
  ('01J00000000000000000000007', 'paused, went on', NULL, 'lab1', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}', 'auto', '', 5, '', '', NULL, NULL, 1767225600007000, 1767225600000014, NULL, 4, 200, 1.5, 1.5, NULL, NULL, NULL, NULL, NULL, '', 40);

INSERT INTO attempts (id, run, number, device, directory, token_sha256, resumed_from_step, start_time, end_time, last_step, persisted_sequence, outcome, outcome_reason, shepherd_pid, shepherd_start_ticks, shepherd_boot_id, max_rss_bytes, cpu_seconds, started_sequence) VALUES
  (1, '01J00000000000000000000001', 1, 'cpu:0', 'attempts/01J00000000000000000000001-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000025, 200, 203, 1, '', 4711, 99, 'boot', 1000000, 1.5, 8),
  (2, '01J00000000000000000000002', 1, 'cpu:0', 'attempts/01J00000000000000000000002-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000025, 3, 6, 2, 'the loss is NaN at step 3', 4711, 99, 'boot', 1000000, 1.5, 13),
  (3, '01J00000000000000000000005', 1, 'cpu:0', 'attempts/01J00000000000000000000005-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000025, 1, 3, 0, '', 4711, 99, 'boot', 1000000, 1.5, 18),
  (4, '01J00000000000000000000006', 1, 'cpu:0', 'attempts/01J00000000000000000000006-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000026, 4, 6, 0, '', 4711, 99, 'boot', 1000000, 1.5, 21),
  (5, '01J00000000000000000000006', 2, 'cpu:0', 'attempts/01J00000000000000000000006-2', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 3, 1767225600000015, NULL, 5, 3, 0, '', 4711, 99, 'boot', 1000000, 1.5, 29),
  (6, '01J00000000000000000000007', 1, 'cpu:0', 'attempts/01J00000000000000000000007-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000025, 3, 7, 5, '', 4711, 99, 'boot', 1000000, 1.5, 31),
  (7, '01J00000000000000000000007', 2, 'cpu:0', 'attempts/01J00000000000000000000007-2', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 2, 1767225600000015, 1767225600000025, 4, 4, 5, '', 4711, 99, 'boot', 1000000, 1.5, 35);

INSERT INTO series (id, attempt, position, name) VALUES
  (1, 1, 0, 'loss'),
  (2, 1, 1, 'gradient_norm'),
  (3, 2, 0, 'loss'),
  (4, 2, 1, 'gradient_norm'),
  (5, 3, 0, 'loss'),
  (6, 4, 0, 'loss'),
  (7, 5, 0, 'loss'),
  (8, 6, 0, 'loss'),
  (9, 7, 0, 'loss');

-- 200 points of a curve: more than three blocks of the levels that came later.
WITH RECURSIVE steps(step) AS (SELECT 1 UNION ALL SELECT step + 1 FROM steps WHERE step < 200)
INSERT INTO points SELECT 1, step, 0.5 / step FROM steps UNION ALL SELECT 2, step, 2.0 FROM steps;

INSERT INTO points (series, step, value) VALUES
  (3, 1, 4.25),
  (3, 2, 9e999),
  (3, 3, NULL),
  (4, 1, 1.0),
  (4, 2, -9e999),
  (4, 3, 9e999),
  (5, 1, 3.5),
  (6, 1, 4.0),
  (6, 2, 3.5),
  (6, 3, 3.0),
  (6, 4, 2.5),
  (7, 4, 2.75),
  (7, 5, 2.5),
  (8, 1, 3.0),
  (8, 2, 2.5),
  (8, 3, 2.0),
  (9, 3, 1.75),
  (9, 4, 1.5);


INSERT INTO journal (attempt, sequence, last_step) VALUES
  (1, 9, 80),
  (1, 10, 150),
  (1, 11, 200),
  (2, 14, 3),
  (3, 19, 1),
  (4, 22, 2),
  (4, 23, 3),
  (4, 24, 4),
  (5, 30, 5),
  (6, 32, 2),
  (6, 33, 3),
  (7, 36, 4);

UPDATE attempts SET checkpoint_step = 3, checkpoint_file = 'step-3.safetensors',
  checkpoint_bytes = 1003 WHERE id = 4;

UPDATE attempts SET checkpoint_step = 2, checkpoint_file = 'step-2.safetensors',
  checkpoint_bytes = 1002 WHERE id = 6;
UPDATE attempts SET checkpoint_step = 4, checkpoint_file = 'step-4.safetensors',
  checkpoint_bytes = 1004 WHERE id = 7;

UPDATE runs SET memory_bytes = 5e6, validation_loss = 1.25 WHERE id = '01J00000000000000000000001';
