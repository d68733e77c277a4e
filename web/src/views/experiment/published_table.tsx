// What was published for a preset's runs, beside what they came to here.
import { publishedFor } from '../../compare/published';
import { formatValue } from '../../format/format';
import type { PresetJson } from '../../gen/normlab/v1/experiment_service_pb';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import { StateLabel } from '../shared/state_label';

interface Props {
  preset: PresetJson | undefined;
  runs: readonly RunJson[];
}

export function PublishedTable({ preset, runs }: Props) {
  const rows = runs.flatMap((run) => {
    const published = publishedFor(preset, run);
    return published ? [{ run, published }] : [];
  });
  if (rows.length === 0) return null;
  const number = (value: unknown) => (value === undefined ? '' : formatValue(Number(value)));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways where there is little room
    <section class="published" aria-label="published figures" tabIndex={0}>
      <table>
        <caption class="secondary" title={preset?.description}>
          published: {preset?.source}
        </caption>
        <thead>
          <tr>
            <th scope="col">run</th>
            <th scope="col">state</th>
            <th scope="col" class="number" title="nats per token">
              final loss
            </th>
            <th scope="col" class="number">
              published
            </th>
            <th scope="col" class="number" title="before clipping">
              largest grad norm
            </th>
            <th scope="col" class="number">
              published
            </th>
            <th scope="col" class="band">
              within what a repetition must lie
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ run, published }) => (
            <tr key={run.id} data-published={run.displayName}>
              <th scope="row">{run.displayName}</th>
              <td>
                <StateLabel state={run.state} />
              </td>
              <td class="number">{run.endTime ? number(run.summary?.finalLoss) : ''}</td>
              <td class="number secondary">{number(published.figures.finalLoss)}</td>
              <td class="number">{run.endTime ? number(run.summary?.maxGradientNorm) : ''}</td>
              <td class="number secondary">{number(published.figures.maxGradientNorm)}</td>
              <td class="band secondary" title={published.band}>
                {published.band}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
