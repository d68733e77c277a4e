// What was published for the runs of a preset, beside what was measured here.
import type { FiguresJson, PresetJson } from '../gen/normlab/v1/experiment_service_pb';
import type { RunJson } from '../gen/normlab/v1/run_pb';

export interface Published {
  figures: FiguresJson;
  /** Within what a repetition must lie. */
  band: string;
}

/** undefined: nothing was published for a run with these settings. */
export function publishedFor(preset: PresetJson | undefined, run: RunJson): Published | undefined {
  const found = preset?.runs?.find((one) => one.displayName === run.displayName);
  if (!found?.published || !sameSettings(found.spec ?? {}, run.spec ?? {})) return undefined;
  return { figures: found.published, band: found.band ?? '' };
}

// A run with settings of its own is another experiment.
function sameSettings(preset: object, run: object): boolean {
  const text = (spec: object) => JSON.stringify(Object.entries(spec).sort());
  return text(preset) === text(run);
}
