import { describe, expect, it } from 'vitest';
import {
  type Address,
  addressOf,
  formatAddress,
  formatRange,
  parseAddress,
  parseIds,
  parseRange,
} from './url_state';

describe('the address', () => {
  it('round-trips every view with what it keeps', () => {
    const addresses: Address[] = [
      { view: 'runs', id: '', query: { sel: '01J8A,01J8B', x: '20..80' } },
      { view: 'run', id: '01J8A', query: {} },
      { view: 'compare', id: '', query: { runs: '01J8A,01J8B' } },
      { view: 'experiment', id: '01J8E', query: {} },
      { view: 'queue', id: '', query: {} },
      { view: 'submit', id: '', query: { from: '01J8A' } },
    ];
    for (const address of addresses) expect(parseAddress(formatAddress(address))).toEqual(address);
    expect(formatAddress(addresses[0] as Address)).toBe('#/runs?sel=01J8A,01J8B&x=20..80');
    expect(addressOf('run', '01J8A')).toBe('#/runs/01J8A');
  });

  it('round-trips any text, and leaves it readable', () => {
    for (const filter of ['state=running loss<0.1', 'a&b=c', '"50 % + #1"', 'é 🧪', '%2C,']) {
      const address: Address = { view: 'runs', id: '', query: { filter } };
      expect(parseAddress(formatAddress(address))).toEqual(address);
    }
    expect(addressOf('runs', '', { filter: 'user=lab1' })).toBe('#/runs?filter=user=lab1');
  });

  it('takes what is no address as the runs', () => {
    for (const hash of ['', '#', '#/', '#elsewhere', '#/nowhere', '#/experiments/', '#/queue/x']) {
      expect(parseAddress(hash)).toEqual({ view: 'runs', id: '', query: {} });
    }
    expect(parseAddress('#/runs?sel=').query).toEqual({ sel: '' });
  });

  it('drops what no id can be, and repeats; tells "says nothing" from "none"', () => {
    expect(parseIds('a,a,<b>,,c')).toEqual(['a', 'c']);
    expect(parseIds('')).toEqual([]);
    expect(parseIds(undefined)).toBeUndefined();
  });

  it('knows a range from what is none', () => {
    expect(parseRange('20..80')).toEqual({ from: 20, to: 80 });
    expect(formatRange({ from: 20, to: 80 })).toBe('20..80');
    for (const text of ['80..20', '5..5', 'a..b', '-1..5', '', undefined]) {
      expect(parseRange(text)).toBeUndefined();
    }
    expect(formatRange(undefined)).toBeUndefined();
  });
});
