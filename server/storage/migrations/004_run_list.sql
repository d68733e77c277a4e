-- Lists of runs: what people say about runs, and rows small enough to look through ten thousand.

CREATE TABLE run_specs (
  run TEXT PRIMARY KEY REFERENCES runs (id),
  spec TEXT NOT NULL,            -- as given, proto3 JSON
  effective_spec TEXT NOT NULL   -- every setting resolved
) STRICT, WITHOUT ROWID;
INSERT INTO run_specs SELECT id, spec, effective_spec FROM runs;

-- Every setting of every run by its declared name, to filter and order by.
CREATE TABLE run_settings (
  name TEXT NOT NULL,
  run TEXT NOT NULL REFERENCES runs (id),
  value ANY NOT NULL,
  PRIMARY KEY (name, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_settings_by_run ON run_settings (run);

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

-- Series of deleted runs whose points are still to be deleted, a few thousand at a time.
CREATE TABLE garbage (
  series INTEGER PRIMARY KEY
) STRICT;
