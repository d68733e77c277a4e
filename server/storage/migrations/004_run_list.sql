-- Lists of runs: what people say about runs, and rows small enough to look through ten thousand.

CREATE TABLE run_specs (
  run TEXT PRIMARY KEY REFERENCES runs (id),
  spec TEXT NOT NULL,            -- as given, proto3 JSON
  effective_spec TEXT NOT NULL   -- every setting resolved
) STRICT, WITHOUT ROWID;
INSERT INTO run_specs SELECT id, spec, effective_spec FROM runs;

-- Every setting of every run by its declared name, to filter and order by; filled by the program.
-- No foreign key: it would need an index by run, as large as the table.
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
CREATE INDEX run_labels_by_label ON run_labels (label, run);

ALTER TABLE runs DROP COLUMN spec;
ALTER TABLE runs DROP COLUMN effective_spec;
ALTER TABLE runs ADD COLUMN notes TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;

-- Runs that were deleted, for watchers that come back later.
CREATE TABLE deleted_runs (
  sequence INTEGER NOT NULL,
  run TEXT NOT NULL,
  PRIMARY KEY (sequence, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX deleted_runs_by_run ON deleted_runs (run);

-- Ids of attempts and series are never given a second time (AUTOINCREMENT): the points of a deleted
-- series may still be there when the next one is made. That cannot be added to a table, so both are
-- made anew.
DROP VIEW curves;
CREATE TABLE attempts_anew (
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
  checkpoint_bytes INTEGER NOT NULL DEFAULT 0,
  UNIQUE (run, number)
) STRICT;
INSERT INTO attempts_anew SELECT * FROM attempts;
CREATE TABLE series_anew (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  attempt INTEGER NOT NULL REFERENCES attempts_anew (id),
  position INTEGER NOT NULL,  -- the trainer's index
  name TEXT NOT NULL,
  UNIQUE (attempt, position),
  UNIQUE (attempt, name)
) STRICT;
INSERT INTO series_anew SELECT * FROM series;
DROP TABLE series;
DROP TABLE attempts;
ALTER TABLE attempts_anew RENAME TO attempts;  -- and so in what refers to it
ALTER TABLE series_anew RENAME TO series;
CREATE VIEW curves AS
SELECT runs.id AS run, runs.display_name AS display_name, attempts.number AS attempt,
       series.name AS name, points.step AS step, points.value AS value
FROM points
JOIN series ON series.id = points.series
JOIN attempts ON attempts.id = series.attempt
JOIN runs ON runs.id = attempts.run;

-- Series of deleted runs whose points are still to be deleted, a few thousand at a time.
CREATE TABLE garbage (
  series INTEGER PRIMARY KEY
) STRICT;
