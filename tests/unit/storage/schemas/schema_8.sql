-- A database as normlab had them when its schema was number 8: the schema as released, and rows. Those
-- of schema 6 were brought here by that version itself; new is a run that is stopped for its GPU's memory.
-- Never changed: it is what somebody may still have.

CREATE TABLE meta (
  name TEXT PRIMARY KEY,   -- store_id; sequence: number of the latest write
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'admin')),
  create_time INTEGER NOT NULL
, max_running INTEGER NOT NULL DEFAULT 0, max_queued INTEGER NOT NULL DEFAULT 0, max_gpu_memory_bytes INTEGER NOT NULL DEFAULT 0, remove_time INTEGER) STRICT;

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
, sweep TEXT NOT NULL DEFAULT '') STRICT, WITHOUT ROWID;

CREATE TABLE runs (
  id TEXT PRIMARY KEY,     -- ULID
  display_name TEXT NOT NULL,
  experiment TEXT REFERENCES experiments (id),
  user_name TEXT NOT NULL,
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
, memory_bytes REAL, validation_loss REAL, nan_numbers INTEGER NOT NULL DEFAULT 0, notes TEXT NOT NULL DEFAULT '', pinned INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0, priority INTEGER NOT NULL DEFAULT 0, queue_rank INTEGER NOT NULL DEFAULT 0, held INTEGER NOT NULL DEFAULT 0, not_before INTEGER, gpus INTEGER NOT NULL DEFAULT 0, gpu_memory_bytes INTEGER NOT NULL DEFAULT 0, exclusive INTEGER NOT NULL DEFAULT 0, stop_detail TEXT NOT NULL DEFAULT '', tries INTEGER NOT NULL DEFAULT 0, limits_from INTEGER NOT NULL DEFAULT 0, gpu_need_bytes INTEGER NOT NULL DEFAULT 0, stop_cause TEXT NOT NULL DEFAULT ''
  CHECK (stop_cause IN ('', 'time', 'preempted', 'server', 'early', 'memory'))) STRICT, WITHOUT ROWID;

CREATE TABLE run_specs (
  run TEXT PRIMARY KEY REFERENCES runs (id),
  spec TEXT NOT NULL,            -- as given, proto3 JSON
  effective_spec TEXT NOT NULL   -- every setting resolved
) STRICT, WITHOUT ROWID;

CREATE TABLE run_settings (
  name TEXT NOT NULL,
  run TEXT NOT NULL,
  value ANY NOT NULL,          -- a number, 0 or 1 for a switch, or a text
  PRIMARY KEY (name, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_labels (
  run TEXT NOT NULL REFERENCES runs (id),
  label TEXT NOT NULL,
  PRIMARY KEY (run, label)
) STRICT, WITHOUT ROWID;

CREATE TABLE deleted_runs (
  sequence INTEGER NOT NULL,
  run TEXT NOT NULL,
  PRIMARY KEY (sequence, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE "attempts" (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
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
  checkpoint_step INTEGER NOT NULL DEFAULT 0,     -- 0: there is none
  checkpoint_file TEXT NOT NULL DEFAULT '',
  checkpoint_bytes INTEGER NOT NULL DEFAULT 0, resumed_from INTEGER REFERENCES attempts (id), resumed_from_file TEXT NOT NULL DEFAULT '', earlier_checkpoint_step INTEGER NOT NULL DEFAULT 0, earlier_checkpoint_file TEXT NOT NULL DEFAULT '', run_seconds REAL, end_reason TEXT NOT NULL DEFAULT '', interrupted INTEGER NOT NULL DEFAULT 0, abandoned INTEGER NOT NULL DEFAULT 0, gpu_memory_bytes INTEGER NOT NULL DEFAULT 0, exclusive INTEGER NOT NULL DEFAULT 0, began REAL NOT NULL DEFAULT 0,
  UNIQUE (run, number)
) STRICT;

CREATE TABLE "series" (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  attempt INTEGER NOT NULL REFERENCES "attempts" (id),
  position INTEGER NOT NULL,  -- the trainer's index
  name TEXT NOT NULL,
  UNIQUE (attempt, position),
  UNIQUE (attempt, name)
) STRICT;

CREATE TABLE points (
  series INTEGER NOT NULL,
  step INTEGER NOT NULL,
  value REAL,
  PRIMARY KEY (series, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE levels (
  series INTEGER NOT NULL,
  level INTEGER NOT NULL,
  first_step INTEGER NOT NULL,
  block INTEGER NOT NULL,      -- 0, 1, ...: it holds the points number block * 64^level and on
  last_step INTEGER NOT NULL,
  first_value REAL,
  last_value REAL,
  lowest_step INTEGER,         -- of the smallest finite value; NULL when no point is finite
  lowest REAL,
  highest_step INTEGER,
  highest REAL,
  non_finite INTEGER NOT NULL, -- so many points are NaN or infinite,
  bad_step INTEGER,            -- the first of them is here,
  bad REAL,                    -- and is this
  PRIMARY KEY (series, level, first_step)
) STRICT, WITHOUT ROWID;

CREATE TABLE journal (
  attempt INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  last_step INTEGER NOT NULL,
  PRIMARY KEY (attempt, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE journal_pages (
  attempt INTEGER NOT NULL,
  first_sequence INTEGER NOT NULL,
  first_step INTEGER NOT NULL,  -- last_step at first_sequence
  steps BLOB NOT NULL,
  PRIMARY KEY (attempt, first_sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE garbage (
  series INTEGER PRIMARY KEY
) STRICT;

CREATE INDEX runs_by_experiment ON runs (experiment) WHERE experiment IS NOT NULL;

CREATE INDEX runs_by_state ON runs (state);

CREATE INDEX runs_by_change ON runs (changed_sequence);

CREATE INDEX runs_by_name ON runs (display_name);

CREATE INDEX run_labels_by_label ON run_labels (label, run);

CREATE INDEX deleted_runs_by_run ON deleted_runs (run);

CREATE VIEW curves AS
SELECT runs.id AS run, runs.display_name AS display_name, attempts.number AS attempt,
       series.name AS name, points.step AS step, points.value AS value
FROM points
JOIN series ON series.id = points.series
JOIN attempts ON attempts.id = series.attempt
JOIN runs ON runs.id = attempts.run;

CREATE INDEX attempts_by_origin ON attempts (resumed_from);

CREATE INDEX runs_in_queue ON runs (user_name, priority, queue_rank, id, held, state)
WHERE state = 1;

CREATE INDEX runs_not_before ON runs (not_before) WHERE not_before IS NOT NULL;

CREATE TABLE run_dependencies (
  run TEXT NOT NULL REFERENCES runs (id),
  after TEXT NOT NULL,         -- may have been deleted since; it counts as ended then
  condition TEXT NOT NULL CHECK (condition IN ('ok', 'any')),
  PRIMARY KEY (run, after)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_dependencies_by_after ON run_dependencies (after);

CREATE INDEX attempts_by_end ON attempts (end_time);

CREATE TABLE early_stops (
  run TEXT NOT NULL REFERENCES runs (id),
  step INTEGER NOT NULL,
  peers INTEGER NOT NULL,      -- that had come so far
  reason TEXT NOT NULL,        -- why it is stopped; empty: it went on
  pending INTEGER NOT NULL,    -- it is to be stopped and has not been told yet
  PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE drained_devices (
  device TEXT PRIMARY KEY,     -- id
  reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 8;

INSERT INTO meta (name, value) VALUES
  ('sequence', 40),
  ('store_id', '0123456789ab');

INSERT INTO users (id, name, role, create_time, max_running, max_queued, max_gpu_memory_bytes, remove_time) VALUES
  (1, 'lab1', 'admin', 1767225600000000, 0, 0, 0, NULL),
  (2, 'guest', 'viewer', 1767225600000001, 2, 5, 8589934592, NULL),
  (3, 'left', 'member', 1767225600000004, 0, 0, 0, 1767225700000000);

INSERT INTO tokens (sha256, user_id, purpose, create_time) VALUES
  ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 1, 'owner', 1767225600000000),
  ('bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', 2, 'browser', 1767225600000002);

INSERT INTO experiments (id, display_name, preset, user_name, create_time, sweep) VALUES
  ('01J0000000000000000000000E', 'where the norm goes', 'article', 'lab1', 1767225600000000, ''),
  ('01J0000000000000000000000F', 'which width', '', 'lab1', 1767225600000003, '{"base": {"layers": 2}, "axes": [{"setting": "d_model", "values": ["32", "64"]}], "earlyStop": {"steps": ["100"], "quantile": 0.5}}');

INSERT INTO runs (id, display_name, experiment, user_name, device, colour, state, wait_reason, end_reason, exit_code, exit_signal, create_time, start_time, end_time, step, steps, final_loss, min_loss, final_gradient_norm, max_gradient_norm, first_bad_step, parameter_count, flops_per_step, instruction_set, changed_sequence, memory_bytes, validation_loss, nan_numbers, notes, pinned, archived, priority, queue_rank, held, not_before, gpus, gpu_memory_bytes, exclusive, stop_detail, tries, limits_from, gpu_need_bytes, stop_cause) VALUES
  ('01J00000000000000000000001', 'done, "quoted" <b>', '01J0000000000000000000000E', 'lab1', 'auto', '#4269d0', 7, '', '', 0, NULL, 1767225600001000, 1767225600000010, 1767225600000020, 200, 200, 0.0025, 0.0025, 2.0, 2.0, NULL, 1234, 5000000.0, 'avx2', 12, 5000000.0, 1.25, 0, '', 0, 0, 0, 0, 0, NULL, 0, 0, 0, '', 0, 0, 0, ''),
  ('01J00000000000000000000002', 'diverged', '01J0000000000000000000000E', 'lab1', 'auto', '', 10, '', 'the loss is NaN at step 3', 5, NULL, 1767225600002000, 1767225600000011, 1767225600000021, 3, 200, NULL, 4.25, 9e999, 9e999, 2, 1234, NULL, '', 15, NULL, NULL, 1, '', 0, 0, 0, 0, 0, NULL, 0, 0, 0, '', 0, 0, 0, ''),
  ('01J00000000000000000000003', 'queued', NULL, 'lab1', 'auto', '', 1, 'waits for a device', '', NULL, NULL, 1767225600003000, NULL, NULL, 0, 200, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', 16, NULL, NULL, 0, '', 0, 0, 0, 0, 0, NULL, 0, 0, 0, '', 0, 0, 0, ''),
  ('01J00000000000000000000004', 'cancelled', NULL, 'lab1', 'auto', '', 9, '', 'cancelled by lab1', NULL, NULL, 1767225600004000, NULL, 1767225600000030, 0, 200, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', 17, NULL, NULL, 0, '', 0, 0, 0, 0, 0, NULL, 0, 0, 0, '', 0, 0, 0, ''),
  ('01J00000000000000000000005', 'failed', NULL, 'lab1', 'auto', '', 8, '', 'ended by signal 9 (SIGKILL)', NULL, 9, 1767225600005000, 1767225600000012, 1767225600000022, 1, 200, 3.5, 3.5, NULL, NULL, NULL, NULL, NULL, '', 20, NULL, NULL, 0, 'worth a look', 1, 1, 0, 0, 0, NULL, 0, 0, 0, '', 0, 0, 0, ''),
  ('01J00000000000000000000006', 'running', NULL, 'lab1', 'auto', '', 3, '', '', NULL, NULL, 1767225600006000, 1767225600000013, NULL, 5, 1000, 2.5, 2.5, NULL, NULL, NULL, 99, NULL, '', 30, NULL, NULL, 0, '', 0, 0, 0, 0, 0, NULL, 0, 0, 0, '', 0, 0, 0, ''),
  ('01J00000000000000000000007', 'paused, went on', NULL, 'lab1', 'auto', '', 5, '', '', NULL, NULL, 1767225600007000, 1767225600000014, NULL, 4, 200, 1.5, 1.5, NULL, NULL, NULL, NULL, NULL, '', 40, NULL, NULL, 0, '', 0, 0, 0, 0, 0, NULL, 0, 0, 0, '', 0, 0, 0, ''),
  ('01J00000000000000000000008', 'out of time', NULL, 'lab1', 'auto', '', 4, '', '', NULL, NULL, 1767225600008000, 1767225600000016, NULL, 2, 200, 1.5, 1.5, NULL, NULL, NULL, NULL, NULL, '', 38, NULL, NULL, 0, '', 0, 0, 0, 0, 0, NULL, 0, 0, 0, '', 0, 0, 0, 'time'),
  ('01J0000000000000000000000A', 'urgent, of its own', NULL, 'lab1', 'auto', '', 1, 'held by lab1', '', NULL, NULL, 1767225600010000, NULL, NULL, 0, 200, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', 37, NULL, NULL, 0, '', 0, 0, 1, 3, 1, 1767225700000000, 2, 17179869184, 1, '', 2, 1, 0, ''),
  ('01J0000000000000000000000B', 'does worse than its peers', '01J0000000000000000000000F', 'lab1', 'auto', '', 6, '', '', NULL, NULL, 1767225600011000, 1767225600000018, NULL, 0, 200, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', 37, NULL, NULL, 0, '', 0, 0, 0, 0, 0, NULL, 0, 0, 0, 'its loss at step 100 is above the median of 3 peers', 0, 0, 0, 'early'),
  ('01J0000000000000000000000C', 'over its budget', NULL, 'lab1', 'auto', '', 6, '', '', NULL, NULL, 1767225600012000, 1767225600000019, NULL, 0, 200, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', 37, NULL, NULL, 0, '', 0, 0, 0, 0, 0, NULL, 1, 0, 0, 'it held 9.0 GiB of cuda:0, its budget is 8.0 GiB', 0, 0, 3221225472, 'memory'),
  ('01J0000000000000000000000D', 'makes room', NULL, 'lab1', 'auto', '', 4, '', '', NULL, NULL, 1767225600013000, 1767225600000017, NULL, 0, 200, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', 37, NULL, NULL, 0, '', 0, 0, -1, 0, 0, NULL, 0, 0, 0, '01J0000000000000000000000A', 0, 0, 0, 'preempted');

INSERT INTO run_specs (run, spec, effective_spec) VALUES
  ('01J00000000000000000000001', '{"layers": 2, "placement": "post"}', '{"layers": 2, "learningRate": 0.001, "placement": "post", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J00000000000000000000002', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J00000000000000000000003', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J00000000000000000000004', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J00000000000000000000005', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J00000000000000000000006', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 1000, "seed": "1", "dropout": 0}'),
  ('01J00000000000000000000007', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J00000000000000000000008', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J0000000000000000000000A', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J0000000000000000000000B', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J0000000000000000000000C', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}'),
  ('01J0000000000000000000000D', '{}', '{"layers": 6, "learningRate": 0.001, "placement": "pre", "steps": 200, "seed": "1", "dropout": 0}');

INSERT INTO run_settings (name, run, value) VALUES
  ('dropout', '01J00000000000000000000001', 0.0),
  ('dropout', '01J00000000000000000000002', 0.0),
  ('dropout', '01J00000000000000000000003', 0.0),
  ('dropout', '01J00000000000000000000004', 0.0),
  ('dropout', '01J00000000000000000000005', 0.0),
  ('dropout', '01J00000000000000000000006', 0.0),
  ('dropout', '01J00000000000000000000007', 0.0),
  ('dropout', '01J00000000000000000000008', 0.0),
  ('dropout', '01J0000000000000000000000A', 0.0),
  ('dropout', '01J0000000000000000000000B', 0.0),
  ('dropout', '01J0000000000000000000000C', 0.0),
  ('dropout', '01J0000000000000000000000D', 0.0),
  ('layers', '01J00000000000000000000001', 2),
  ('layers', '01J00000000000000000000002', 6),
  ('layers', '01J00000000000000000000003', 6),
  ('layers', '01J00000000000000000000004', 6),
  ('layers', '01J00000000000000000000005', 6),
  ('layers', '01J00000000000000000000006', 6),
  ('layers', '01J00000000000000000000007', 6),
  ('layers', '01J00000000000000000000008', 6),
  ('layers', '01J0000000000000000000000A', 6),
  ('layers', '01J0000000000000000000000B', 6),
  ('layers', '01J0000000000000000000000C', 6),
  ('layers', '01J0000000000000000000000D', 6),
  ('learning_rate', '01J00000000000000000000001', 0.001),
  ('learning_rate', '01J00000000000000000000002', 0.001),
  ('learning_rate', '01J00000000000000000000003', 0.001),
  ('learning_rate', '01J00000000000000000000004', 0.001),
  ('learning_rate', '01J00000000000000000000005', 0.001),
  ('learning_rate', '01J00000000000000000000006', 0.001),
  ('learning_rate', '01J00000000000000000000007', 0.001),
  ('learning_rate', '01J00000000000000000000008', 0.001),
  ('learning_rate', '01J0000000000000000000000A', 0.001),
  ('learning_rate', '01J0000000000000000000000B', 0.001),
  ('learning_rate', '01J0000000000000000000000C', 0.001),
  ('learning_rate', '01J0000000000000000000000D', 0.001),
  ('placement', '01J00000000000000000000001', 'post'),
  ('placement', '01J00000000000000000000002', 'pre'),
  ('placement', '01J00000000000000000000003', 'pre'),
  ('placement', '01J00000000000000000000004', 'pre'),
  ('placement', '01J00000000000000000000005', 'pre'),
  ('placement', '01J00000000000000000000006', 'pre'),
  ('placement', '01J00000000000000000000007', 'pre'),
  ('placement', '01J00000000000000000000008', 'pre'),
  ('placement', '01J0000000000000000000000A', 'pre'),
  ('placement', '01J0000000000000000000000B', 'pre'),
  ('placement', '01J0000000000000000000000C', 'pre'),
  ('placement', '01J0000000000000000000000D', 'pre'),
  ('seed', '01J00000000000000000000001', 1),
  ('seed', '01J00000000000000000000002', 1),
  ('seed', '01J00000000000000000000003', 1),
  ('seed', '01J00000000000000000000004', 1),
  ('seed', '01J00000000000000000000005', 1),
  ('seed', '01J00000000000000000000006', 1),
  ('seed', '01J00000000000000000000007', 1),
  ('seed', '01J00000000000000000000008', 1),
  ('seed', '01J0000000000000000000000A', 1),
  ('seed', '01J0000000000000000000000B', 1),
  ('seed', '01J0000000000000000000000C', 1),
  ('seed', '01J0000000000000000000000D', 1),
  ('steps', '01J00000000000000000000001', 200),
  ('steps', '01J00000000000000000000002', 200),
  ('steps', '01J00000000000000000000003', 200),
  ('steps', '01J00000000000000000000004', 200),
  ('steps', '01J00000000000000000000005', 200),
  ('steps', '01J00000000000000000000006', 1000),
  ('steps', '01J00000000000000000000007', 200),
  ('steps', '01J00000000000000000000008', 200),
  ('steps', '01J0000000000000000000000A', 200),
  ('steps', '01J0000000000000000000000B', 200),
  ('steps', '01J0000000000000000000000C', 200),
  ('steps', '01J0000000000000000000000D', 200);

INSERT INTO attempts (id, run, number, device, directory, token_sha256, resumed_from_step, start_time, end_time, last_step, persisted_sequence, outcome, outcome_reason, shepherd_pid, shepherd_start_ticks, shepherd_boot_id, max_rss_bytes, cpu_seconds, started_sequence, checkpoint_step, checkpoint_file, checkpoint_bytes, resumed_from, resumed_from_file, earlier_checkpoint_step, earlier_checkpoint_file, run_seconds, end_reason, interrupted, abandoned, gpu_memory_bytes, exclusive, began) VALUES
  (1, '01J00000000000000000000001', 1, 'cpu:0', 'attempts/01J00000000000000000000001-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000025, 200, 203, 1, '', 4711, 99, 'boot', 1000000, 1.5, 8, 0, '', 0, NULL, '', 0, '', NULL, '', 0, 0, 0, 0, 0.0),
  (2, '01J00000000000000000000002', 1, 'cpu:0', 'attempts/01J00000000000000000000002-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000025, 3, 6, 2, 'the loss is NaN at step 3', 4711, 99, 'boot', 1000000, 1.5, 13, 0, '', 0, NULL, '', 0, '', NULL, '', 0, 0, 0, 0, 0.0),
  (3, '01J00000000000000000000005', 1, 'cpu:0', 'attempts/01J00000000000000000000005-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000025, 1, 3, 0, '', 4711, 99, 'boot', 1000000, 1.5, 18, 0, '', 0, NULL, '', 0, '', NULL, '', 0, 0, 0, 0, 0.0),
  (4, '01J00000000000000000000006', 1, 'cpu:0', 'attempts/01J00000000000000000000006-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000026, 4, 6, 0, '', 4711, 99, 'boot', 1000000, 1.5, 21, 3, 'step-3.safetensors', 1003, NULL, '', 0, '', NULL, '', 0, 0, 0, 0, 0.0),
  (5, '01J00000000000000000000006', 2, 'cpu:0', 'attempts/01J00000000000000000000006-2', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 3, 1767225600000015, NULL, 5, 3, 0, '', 4711, 99, 'boot', 1000000, 1.5, 29, 0, '', 0, 4, 'step-3.safetensors', 0, '', NULL, '', 0, 0, 0, 0, 0.99),
  (6, '01J00000000000000000000007', 1, 'cpu:0', 'attempts/01J00000000000000000000007-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, 1767225600000025, 3, 7, 5, '', 4711, 99, 'boot', 1000000, 1.5, 31, 2, 'step-2.safetensors', 1002, NULL, '', 0, '', NULL, '', 0, 0, 0, 0, 0.0),
  (7, '01J00000000000000000000007', 2, 'cpu:0', 'attempts/01J00000000000000000000007-2', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 2, 1767225600000015, 1767225600000025, 4, 4, 5, '', 4711, 99, 'boot', 1000000, 1.5, 35, 4, 'step-4.safetensors', 1004, 6, 'step-2.safetensors', 0, '', NULL, '', 0, 0, 0, 0, 0.0),
  (8, '01J00000000000000000000008', 1, 'cpu:0', 'attempts/01J00000000000000000000008-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, NULL, 2, 3, 0, '', 4711, 99, 'boot', NULL, NULL, 37, 0, '', 0, NULL, '', 0, '', 3600.5, '', 0, 0, 0, 0, 0.99),
  (9, '01J0000000000000000000000D', 1, 'cpu:0', 'attempts/01J0000000000000000000000D-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, NULL, 0, 0, 0, '', 4711, 99, 'boot', NULL, NULL, 37, 0, '', 0, NULL, '', 0, '', NULL, '', 0, 0, 8589934592, 0, 0.99),
  (10, '01J0000000000000000000000B', 1, 'cpu:0', 'attempts/01J0000000000000000000000B-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, NULL, 0, 0, 0, '', 4711, 99, 'boot', NULL, NULL, 37, 0, '', 0, NULL, '', 0, '', NULL, '', 0, 0, 0, 1, 0.99),
  (11, '01J0000000000000000000000C', 1, 'cpu:0', 'attempts/01J0000000000000000000000C-1', 'cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc', 0, 1767225600000015, NULL, 0, 0, 0, '', 4711, 99, 'boot', NULL, NULL, 37, 0, '', 0, NULL, '', 0, '', NULL, '', 0, 0, 8589934592, 0, 12.5);

INSERT INTO series (id, attempt, position, name) VALUES
  (1, 1, 0, 'loss'),
  (2, 1, 1, 'gradient_norm'),
  (3, 2, 0, 'loss'),
  (4, 2, 1, 'gradient_norm'),
  (5, 3, 0, 'loss'),
  (6, 4, 0, 'loss'),
  (7, 5, 0, 'loss'),
  (8, 6, 0, 'loss'),
  (9, 7, 0, 'loss'),
  (10, 8, 0, 'loss');

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
  (9, 4, 1.5),
  (10, 1, 2.0),
  (10, 2, 1.5);

INSERT INTO levels (series, level, first_step, block, last_step, first_value, last_value, lowest_step, lowest, highest_step, highest, non_finite, bad_step, bad) VALUES
  (1, 1, 1, 0, 64, 0.5, 0.0078125, 64, 0.0078125, 1, 0.5, 0, NULL, NULL),
  (1, 1, 65, 1, 128, 0.007692307692307693, 0.00390625, 128, 0.00390625, 65, 0.007692307692307693, 0, NULL, NULL),
  (1, 1, 129, 2, 192, 0.003875968992248062, 0.0026041666666666665, 192, 0.0026041666666666665, 129, 0.003875968992248062, 0, NULL, NULL),
  (2, 1, 1, 0, 64, 2.0, 2.0, 1, 2.0, 1, 2.0, 0, NULL, NULL),
  (2, 1, 65, 1, 128, 2.0, 2.0, 65, 2.0, 65, 2.0, 0, NULL, NULL),
  (2, 1, 129, 2, 192, 2.0, 2.0, 129, 2.0, 129, 2.0, 0, NULL, NULL);

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
  (7, 36, 4),
  (8, 38, 2);

INSERT INTO run_labels (run, label) VALUES
  ('01J00000000000000000000005', 'best'),
  ('01J00000000000000000000005', 'ünïcode, "quoted"');

INSERT INTO deleted_runs (sequence, run) VALUES
  (39, '01J00000000000000000000009');

INSERT INTO run_dependencies (run, after, condition) VALUES
  ('01J0000000000000000000000A', '01J00000000000000000000001', 'ok'),
  ('01J0000000000000000000000A', '01J00000000000000000000009', 'any');

INSERT INTO early_stops (run, step, peers, reason, pending) VALUES
  ('01J0000000000000000000000B', 100, 3, 'its loss at step 100 is above the median of 3 peers', 1);

INSERT INTO audit (id, time, user_name, origin, action, run, subject, detail, owner) VALUES
  (1, 1767225600004001, 'lab1', '127.0.0.1', 'cancel', '01J00000000000000000000004', '', '', 'lab1'),
  (2, 1767225600004002, 'lab1', '127.0.0.1', 'limits', '', 'guest', 'max_running "0" -> "2"', 'guest'),
  (4, 1767225600004003, '', '', 'early_stop', '01J0000000000000000000000B', '', 'step 100, ünïcode, "quoted"', 'lab1');

INSERT INTO drained_devices (device, reason) VALUES
  ('cuda:1', 'its fan is loud');
