-- Pausing and resuming: the latest checkpoint of each attempt, by which the next one goes on. Files
-- are in runs/RUN/checkpoints below the data folder. And two numbers more for tables of runs.

ALTER TABLE attempts ADD COLUMN checkpoint_step INTEGER NOT NULL DEFAULT 0;   -- 0: there is none
ALTER TABLE attempts ADD COLUMN checkpoint_file TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN checkpoint_bytes INTEGER NOT NULL DEFAULT 0;

ALTER TABLE runs ADD COLUMN memory_bytes REAL;     -- estimated from the settings
ALTER TABLE runs ADD COLUMN validation_loss REAL;  -- the latest

CREATE INDEX runs_by_name ON runs (display_name);  -- a run may be named where weights come from
