// Runs that differ in nothing but their seed belong together: what one seed shows may be chance.
import type { RunJson } from '../gen/normlab/v1/run_pb';

export interface SeedGroup {
  /** The id of its first run. */
  key: string;
  name: string;
  runs: RunJson[];
}

// These change when or where a run is trained, and not what comes out of it.
const irrelevant = new Set(['seed', 'threads', 'checkpointEvery', 'checkpointSeconds']);

/** In the order of their first runs; a run whose settings are not known is alone. */
export function seedGroups(runs: readonly RunJson[]): SeedGroup[] {
  const groups = new Map<string, RunJson[]>();
  for (const run of runs) {
    const key = run.effectiveSpec ? settingsKey(run.effectiveSpec) : (run.id ?? '');
    const known = groups.get(key);
    if (known) known.push(run);
    else groups.set(key, [run]);
  }
  return [...groups.values()].map((members) => ({
    key: members[0]?.id ?? '',
    name: groupName(members),
    runs: members,
  }));
}

function settingsKey(spec: object): string {
  const entries = Object.entries(spec).filter(([name]) => !irrelevant.has(name));
  return JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function groupName(runs: readonly RunJson[]): string {
  const first = runs[0]?.displayName ?? '';
  if (runs.length === 1) return first;
  const names = new Set(runs.map((run) => withoutSeed(run.displayName ?? '')));
  const name = names.size === 1 ? ([...names][0] as string) : first;
  return `${name || first} · ${runs.length} seeds`;
}

/** "post · seed 3" and "layers=6 seed=3" without their seeds. */
export function withoutSeed(name: string): string {
  return name
    .replace(/[\s·,;]*\bseed[ =]\d+/g, '')
    .replace(/^[\s·,;]+/, '')
    .trim();
}
