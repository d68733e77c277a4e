import { describe, expect, it } from 'vitest';
import { canBeReference, pickRun, referenceFilter } from './run_ref';

const runs = [
  { id: '01JAAA', displayName: 'smoke' },
  { id: '01JAAB', displayName: 'twice' },
  { id: '01JBBB', displayName: 'twice' },
  { id: '01JBBC', displayName: '01JAAA' },
];

describe('a run by what people call it', () => {
  it('is the one with that id, else that name, else that beginning of its id', () => {
    expect(pickRun('01JAAA', runs).displayName).toBe('smoke'); // and not the one that is called so
    expect(pickRun('smoke', runs).id).toBe('01JAAA');
    expect(pickRun('01jaab', runs).id).toBe('01JAAB');
  });

  it('is refused when it is none or several', () => {
    expect(() => pickRun('smo', runs)).toThrow('there is no run "smo"');
    expect(() => pickRun('twice', runs)).toThrow(
      '"twice" is 2 runs; give the id of one: 01JAAB, 01JBBB',
    );
    expect(() => pickRun('01J', runs)).toThrow('"01J" is 4 runs; give the id of one: 01JAAA, ');
  });

  it('is looked for as it is, whatever is in it', () => {
    expect(referenceFilter('a "b" \\ c')).toBe(
      'archived:* name="a \\"b\\" \\\\ c" OR id:"a \\"b\\" \\\\ c"',
    );
    expect([canBeReference(''), canBeReference('a\nb'), canBeReference('a b')]).toEqual([
      false,
      false,
      true,
    ]);
  });
});
