-- What a run needs of a GPU's memory, bytes, when it says nothing itself; 0: it was submitted before
-- that was worked out.
ALTER TABLE runs ADD COLUMN gpu_need_bytes INTEGER NOT NULL DEFAULT 0;

-- One more reason for which the server stops a run. A column's CHECK cannot be changed, so the column
-- is made anew.
ALTER TABLE runs RENAME COLUMN stop_cause TO stop_cause_before;
ALTER TABLE runs ADD COLUMN stop_cause TEXT NOT NULL DEFAULT ''
  CHECK (stop_cause IN ('', 'time', 'preempted', 'server', 'early', 'memory'));
UPDATE runs SET stop_cause = stop_cause_before WHERE stop_cause_before <> '';
ALTER TABLE runs DROP COLUMN stop_cause_before;
