// The strip above the charts of a view: what the axes are, smoothing, where it is zoomed.
import type { ReadonlySignal } from '@preact/signals';
import { formatCount } from '../format/format';
import { plannedSteps } from '../format/run_text';
import { halfLives } from '../series/smooth';
import type { XMode } from '../series/x_axis';
import { cursorStep, cursorX, zoom, zoomTo } from '../state/selection';
import type { Board } from './board';
import { modeOf, setLook } from './look';
import { xTick, xUnits } from './tick_text';

interface Props {
  board: Board;
  /** Whether it is known how long steps took. Without this the x axis is always steps. */
  hasTimes?: ReadonlySignal<boolean>;
}

export function ChartTools({ board, hasTimes }: Props) {
  const look = board.look.value;
  const steps = Math.max(
    0,
    ...board.runs.value.map((run) => plannedSteps(board.live.runs.get(run) ?? {})),
  );
  const choices = new Set([0, ...halfLives(steps), look.halfLife]);
  return (
    <div class="tools">
      {hasTimes ? <XChoice mode={look.x} hasTimes={hasTimes} /> : null}
      <label>
        y{' '}
        <select
          aria-label="y axis"
          value={look.y}
          onChange={(event) =>
            setLook({ y: event.currentTarget.value === 'linear' ? 'linear' : 'log' })
          }
        >
          <option value="log">log</option>
          <option value="linear">linear</option>
        </select>
      </label>
      <label title="Exponential moving average: weights fall by half over so many steps">
        smooth{' '}
        <select
          aria-label="smoothing"
          value={String(look.halfLife)}
          onChange={(event) => setLook({ halfLife: Number(event.currentTarget.value) })}
        >
          {[...choices]
            .sort((a, b) => a - b)
            .map((halfLife) => (
              <option key={halfLife} value={String(halfLife)}>
                {halfLife === 0 ? 'off' : `${formatCount(halfLife)} steps`}
              </option>
            ))}
        </select>
      </label>
      {zoom.value ? (
        <button type="button" onClick={() => zoomTo(undefined)} title="Or double-click a chart">
          {look.x === 'step' ? 'steps ' : ''}
          {xTick(zoom.value.from, look.x)} to {xTick(zoom.value.to, look.x)}
          {look.x === 'tokens' ? ` ${xUnits.tokens}` : ''} · show all
        </button>
      ) : null}
      <CursorPlace x={look.x} />
    </div>
  );
}

// Of its own, because it changes with every move of the cursor.
function CursorPlace({ x }: { x: XMode }) {
  const [step, place] = [cursorStep.value, cursorX.value];
  const text =
    step !== undefined ? `step ${formatCount(step)}` : place === undefined ? '' : xTick(place, x);
  return <span class="secondary">{text}</span>;
}

function XChoice({ mode, hasTimes }: { mode: XMode; hasTimes: ReadonlySignal<boolean> }) {
  return (
    <label>
      x{' '}
      <select
        aria-label="x axis"
        value={mode}
        onChange={(event) => setLook({ x: modeOf(event.currentTarget.value) })}
      >
        <option value="step">steps</option>
        <option value="tokens">tokens</option>
        <option value="time" disabled={!hasTimes.value}>
          training time
        </option>
      </select>
    </label>
  );
}
