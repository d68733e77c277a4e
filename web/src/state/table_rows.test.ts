import { describe, expect, it } from 'vitest';
import { rowWindow, scrollToRow, tableRows } from './table_rows';

describe('the rows of the table', () => {
  const groups = [
    { experiment: 'e', runs: ['1', '2'] },
    { experiment: undefined, runs: ['3'] },
    { experiment: 'f', runs: ['4'] },
  ];
  const keys = (closed: string[], others: string[] = []) =>
    tableRows(groups, others, new Set(closed)).map((row) => row.key);

  it('are experiments with their runs below, and runs on their own', () => {
    expect(keys([])).toEqual(['group e', '1', '2', '3', 'group f', '4']);
  });

  it('leave out the runs of a closed experiment', () => {
    expect(keys(['e'])).toEqual(['group e', '3', 'group f', '4']);
  });

  it('begin with drawn runs that the list does not have', () => {
    expect(keys(['e', 'f'], ['8', '9'])).toEqual(['others', '8', '9', 'group e', '3', 'group f']);
  });
});

describe('the window', () => {
  it('is a part of many rows, with a margin', () => {
    expect(rowWindow(0, 260, 26, 10_000)).toEqual({ from: 0, to: 18 });
    expect(rowWindow(26_000, 260, 26, 10_000)).toEqual({ from: 992, to: 1018 });
  });

  it('never reaches beyond the rows, also when fewer are left than were scrolled by', () => {
    expect(rowWindow(0, 260, 26, 3)).toEqual({ from: 0, to: 3 });
    expect(rowWindow(26_000, 260, 26, 3)).toEqual({ from: 2, to: 3 });
    expect(rowWindow(0, 260, 26, 0)).toEqual({ from: 0, to: 0 });
  });

  it('moves no more than it must to show a row', () => {
    expect(scrollToRow(5, 0, 286, 26, 26)).toBe(0);
    expect(scrollToRow(20, 0, 286, 26, 26)).toBe(520 - 234);
    expect(scrollToRow(2, 520, 286, 26, 26)).toBe(52);
  });
});
