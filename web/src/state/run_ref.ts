// A run as people name it: by its id, by its name, or by how its id begins.
import type { RunJson } from '../gen/normlab/v1/run_pb';

const longestReference = 300; // bytes of a name
const candidatesShown = 3;

/** The filter that finds every run that `text` may mean. */
export function referenceFilter(text: string): string {
  const quoted = `"${text.replace(/["\\]/g, '\\$&')}"`;
  return `archived:* name=${quoted} OR id:${quoted}`;
}

/** Whether a name can be that at all; what cannot need not be asked for. */
export function canBeReference(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what no name has
  return text !== '' && text.length <= longestReference && !/[\u0000-\u001f\u007f]/.test(text);
}

/** The one of these runs that `text` means: its id, else its name, else a prefix of its id. */
export function pickRun(text: string, found: readonly RunJson[]): RunJson {
  const upper = text.toUpperCase();
  const whole = found.find((run) => run.id === upper);
  if (whole) return whole;
  const named = found.filter((run) => run.displayName === text);
  const candidates =
    named.length > 0 ? named : found.filter((run) => run.id?.startsWith(upper) === true);
  const [only, ...others] = candidates;
  if (!only) throw new Error(`there is no run "${text}"`);
  if (others.length === 0) return only;
  const some = candidates.slice(0, candidatesShown).map((run) => run.id);
  const more = candidates.length > candidatesShown ? ', …' : '';
  throw new Error(
    `"${text}" is ${candidates.length} runs; give the id of one: ${some.join(', ')}${more}`,
  );
}
