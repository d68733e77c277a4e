import type { CSSProperties } from 'preact';
import { formatSetting, formatValue } from '../../format/format';
import { noteText, progressShare, progressText, timesText } from '../../format/run_text';
import { stateLook } from '../../format/state';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { DrawnSeries } from '../../state/curve_store';
import type { Live } from '../../state/live';
import { cursorStep, hoveredRun, selected, toggle } from '../../state/selection';

export function RunRow({ live, id, inGroup }: { live: Live; id: string; inGroup: boolean }) {
  const run = live.runs.get(id);
  if (!run) return null;
  const look = stateLook(run.state);
  const isSelected = selected.value.includes(id);
  const line = isSelected ? live.looks.value.get(id) : undefined;
  const spec = run.effectiveSpec ?? run.spec ?? {};
  const held = isSelected ? heldStep(live, id) : 0;
  const style = line ? ({ '--run': line.colour } as CSSProperties) : {};
  const nameOf = (other: string) => live.runs.peek(other)?.displayName;
  const enter = () => {
    hoveredRun.value = isSelected ? id : undefined;
  };
  const leave = () => {
    hoveredRun.value = undefined;
  };
  // The whole row is the target, but neither a control in it nor text being marked to copy.
  const click = (event: MouseEvent) => {
    if ((event.target as Element).closest('input, button')) return;
    if (String(getSelection()) === '') toggle([id]);
  };
  return (
    <tr
      class={`run${isSelected ? ' selected' : ''}${inGroup ? ' in-group' : ''}`}
      style={style}
      data-run={id}
      onMouseEnter={enter}
      onMouseLeave={leave}
      onClick={click}
    >
      <td class="pick">
        <input
          type="checkbox"
          checked={isSelected}
          onChange={() => toggle([id])}
          onFocus={enter}
          onBlur={leave}
          aria-label={`draw ${run.displayName}`}
        />
      </td>
      <td class={`state ${look.word.replace(' ', '-')}`} title={timesText(run, nameOf)}>
        <span class="glyph" aria-hidden="true">
          {look.glyph}
        </span>
        {look.word}
      </td>
      <th scope="row" class="name" title={`${run.displayName}\n${id}`}>
        {run.displayName}
      </th>
      <td class="placement">{spec.placement}</td>
      <td class="number layers">{spec.layers}</td>
      <td class="number rate">{formatSetting(spec.learningRate)}</td>
      <td class="step">
        <span class="count">{progressText(run, held)}</span>
        <progress
          max={1}
          value={progressShare(run, held)}
          aria-label="part of the run that is done"
        />
      </td>
      <td class="number value">{valueText(live, run, id, isSelected, 'loss')}</td>
      <td class="number value">{valueText(live, run, id, isSelected, 'gradient_norm')}</td>
      <td class="note-column secondary" title={timesText(run, nameOf)}>
        {noteText(run, nameOf)}
      </td>
      <td class="who secondary">{run.user}</td>
    </tr>
  );
}

/** A drawn run's last step here: its points come sooner than word of its progress. */
export function heldStep(live: Live, id: string): number {
  live.curves.version.value;
  return live.curves.curve(id)?.series.get('loss')?.lastStep ?? 0;
}

// A drawn run: at the cursor, else its last point. Others: what their last state said, once ended;
// while they run that would be old, and an old number that looks live is worse than none. Only
// drawn rows depend on the curves and the cursor, which change with every frame.
function valueText(live: Live, run: RunJson, id: string, isDrawn: boolean, name: DrawnSeries) {
  if (isDrawn) {
    live.curves.version.value;
    const series = live.curves.curve(id)?.series.get(name);
    const step = cursorStep.value;
    if (series && step !== undefined) {
      return series.lacks(step) ? 'no point' : formatValue(series.at(step));
    }
    if (series && series.values.length > 0) return formatValue(series.values.at(-1));
  }
  if (!stateLook(run.state).ended) return '';
  const final = name === 'loss' ? run.summary?.finalLoss : run.summary?.finalGradientNorm;
  return final === undefined ? '' : formatValue(Number(final));
}
