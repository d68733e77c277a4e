-- Curves of any length are drawn from few rows: each series is kept a second time, as blocks of 64
-- points (level 1), of 64 * 64 (level 2), and so on. A block is written once, when it is full; what
-- is younger is read from the points. Values are as in points: NaN is NULL.
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

-- The journal's older rows, packed many to a row: `steps` holds pairs of variable-length integers
-- (how much sequence and last_step grew since the pair before).
CREATE TABLE journal_pages (
  attempt INTEGER NOT NULL,
  first_sequence INTEGER NOT NULL,
  first_step INTEGER NOT NULL,  -- last_step at first_sequence
  steps BLOB NOT NULL,
  PRIMARY KEY (attempt, first_sequence)
) STRICT, WITHOUT ROWID;

-- Which of a run's numbers are NaN, which their columns hold as NULL, like "there is none": a sum
-- of 1 final_loss, 2 final_gradient_norm, 4 validation_loss.
ALTER TABLE runs ADD COLUMN nan_numbers INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET nan_numbers = (final_loss IS NULL) + 2 * (final_gradient_norm IS NULL)
WHERE first_bad_step IS NOT NULL;
