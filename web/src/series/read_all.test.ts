import { expect, it } from 'vitest';
import { readAll } from './read_all';

it('asks for a long run in pieces, and leaves no step out', async () => {
  const asked: [number, number][] = [];
  const seen: number[] = [];
  const names = Array.from({ length: 100 }, (_, index) => `s${index}`);
  await readAll(
    {
      names: async () => names,
      read: async (_, from, to) => {
        asked.push([from, to]);
        const steps = [from, to];
        return { s0: { steps, values: steps, totalPoints: 2, nonFinitePoints: 0 } };
      },
    },
    25_000,
    (piece) => {
      expect(piece.length).toBe(100);
      seen.push(...(piece[0]?.steps ?? []));
    },
  );
  expect(asked).toEqual([
    [1, 10_000],
    [10_001, 20_000],
    [20_001, 25_000],
  ]);
  expect(seen).toEqual([1, 10_000, 10_001, 20_000, 20_001, 25_000]);
});
