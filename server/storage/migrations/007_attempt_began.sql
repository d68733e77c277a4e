-- When an attempt began, in seconds since boot. Its shepherd may be older: it may have been started
-- ahead, and have waited for an attempt.
ALTER TABLE attempts ADD COLUMN began REAL NOT NULL DEFAULT 0;
-- Those that train just now were not. Linux counts 100 of these ticks a second.
UPDATE attempts SET began = shepherd_start_ticks / 100.0
  WHERE end_time IS NULL AND shepherd_start_ticks IS NOT NULL;
