-- Which attempt's checkpoint an attempt went on from, how long it ran, how it ended.

ALTER TABLE attempts ADD COLUMN resumed_from INTEGER REFERENCES attempts (id);
UPDATE attempts SET resumed_from = (
  SELECT max(earlier.id) FROM attempts AS earlier
  WHERE earlier.run = attempts.run AND earlier.number < attempts.number
    AND earlier.checkpoint_step = attempts.resumed_from_step)
WHERE resumed_from_step > 0;

ALTER TABLE attempts ADD COLUMN run_seconds REAL;   -- by a monotonic clock; NULL while unknown
ALTER TABLE attempts ADD COLUMN end_reason TEXT NOT NULL DEFAULT '';
