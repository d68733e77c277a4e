// What a run's row says in words.

import type { RunJson } from '../gen/normlab/v1/run_pb';
import { formatCount, formatDuration, formatTime, formatUtc, isolated } from './format';
import { stateLook } from './state';

/** 142/180. `held`: the last step of the curve, where the page has it. */
export function progressText(run: RunJson, held = 0): string {
  const steps = plannedSteps(run);
  return steps > 0 ? `${formatCount(stepsDone(run, held))}/${formatCount(steps)}` : '';
}

export function progressShare(run: RunJson, held = 0): number {
  const steps = plannedSteps(run);
  return steps > 0 ? Math.min(1, stepsDone(run, held) / steps) : 0;
}

function stepsDone(run: RunJson, held: number): number {
  return Math.max(held, Number(run.progress?.step ?? 0));
}

export function plannedSteps(run: RunJson): number {
  return Number(run.progress?.steps ?? run.effectiveSpec?.steps ?? 0);
}

/** The name of a run by its id, where the page knows it. */
export type NameOf = (id: string) => string | undefined;

/** Why it waits, when it will be done, how it ended. */
export function noteText(run: RunJson, nameOf: NameOf = () => undefined): string {
  const { ended } = stateLook(run.state);
  if (!ended) {
    if (run.waitReason) return withNames(run.waitReason, nameOf);
    const left = run.progress?.remainingSeconds;
    return typeof left === 'number' ? `${formatDuration(Math.ceil(left))} left` : '';
  }
  const reason = run.state === 'STATE_SUCCEEDED' ? '' : (run.endReason ?? '');
  return reason || tookText(run);
}

// People know runs by name; 26 characters of an id say nothing, and no more of it than six is shown.
function withNames(text: string, nameOf: NameOf): string {
  return text.replace(/\b[0-9A-HJKMNP-TV-Z]{26}\b/g, (id) => {
    const name = nameOf(id);
    return name === undefined ? `run ${id.slice(-6)}` : isolated(name);
  });
}

// Time with a device: what a run waited, or was paused, does not count.
function tookText(run: RunJson): string {
  if (!run.endTime || !run.attempts?.length) return '';
  return `took ${formatDuration(Number(run.runSeconds ?? 0))}`;
}

/** Hover text: the whole note, and the times in local time and UTC. */
export function timesText(run: RunJson, nameOf?: NameOf): string {
  const lines = [
    ['created', run.createTime],
    ['started', run.startTime],
    ['ended', run.endTime],
  ].flatMap(([what, time]) => {
    if (!time) return [];
    const date = new Date(time);
    return [`${what} ${formatTime(date)} (${formatUtc(date)})`];
  });
  return [noteText(run, nameOf), ...lines].filter((line) => line !== '').join('\n');
}
