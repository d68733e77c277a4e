-- Which attempt's checkpoint an attempt went on from, how long it ran, how it ended.

ALTER TABLE attempts ADD COLUMN resumed_from INTEGER REFERENCES attempts (id);  -- NULL: afresh
ALTER TABLE attempts ADD COLUMN resumed_from_file TEXT NOT NULL DEFAULT '';
CREATE INDEX attempts_by_origin ON attempts (resumed_from);
UPDATE attempts SET resumed_from = coalesce(
  (SELECT max(earlier.id) FROM attempts AS earlier
   WHERE earlier.run = attempts.run AND earlier.number < attempts.number
     AND earlier.checkpoint_step = attempts.resumed_from_step),
  (SELECT max(earlier.id) FROM attempts AS earlier
   WHERE earlier.run = attempts.run AND earlier.number < attempts.number
     AND earlier.last_step >= attempts.resumed_from_step))
WHERE resumed_from_step > 0;
UPDATE attempts SET resumed_from_file = coalesce(
  (SELECT origin.checkpoint_file FROM attempts AS origin
   WHERE origin.id = attempts.resumed_from
     AND origin.checkpoint_step = attempts.resumed_from_step), '')
WHERE resumed_from IS NOT NULL;

-- The checkpoint before the latest one: to go on from when the latest one's file is gone.
ALTER TABLE attempts ADD COLUMN earlier_checkpoint_step INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN earlier_checkpoint_file TEXT NOT NULL DEFAULT '';

ALTER TABLE attempts ADD COLUMN run_seconds REAL;   -- by a monotonic clock; NULL while unknown
ALTER TABLE attempts ADD COLUMN end_reason TEXT NOT NULL DEFAULT '';
-- Its processes were killed or lost, through no fault of the run.
ALTER TABLE attempts ADD COLUMN interrupted INTEGER NOT NULL DEFAULT 0;
-- Nothing goes on from it: the next attempt starts afresh.
ALTER TABLE attempts ADD COLUMN abandoned INTEGER NOT NULL DEFAULT 0;
