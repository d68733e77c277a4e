// Which quantity of the blocks is shown; a view keeps it in its address as block=NAME.
import { setQuery } from '../state/router';
import { type BlockMetric, blockMetrics } from './metrics';

export function MetricChoice({ metric }: { metric: BlockMetric }) {
  const group = (probes: boolean) =>
    blockMetrics
      .filter(({ probe }) => probe === probes)
      .map(({ name, title, help }) => (
        <option key={name} value={name} title={help}>
          {title}
        </option>
      ));
  return (
    <>
      <label>
        by block:{' '}
        <select
          aria-label="quantity by block"
          value={metric.name}
          onChange={(event) => setQuery({ block: event.currentTarget.value })}
        >
          <optgroup label="while training">{group(false)}</optgroup>
          <optgroup label="by probes">{group(true)}</optgroup>
        </select>
      </label>
      <span class="secondary">{metric.help}</span>
    </>
  );
}
