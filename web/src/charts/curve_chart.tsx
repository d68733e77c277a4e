// A chart of one series of all drawn runs, with its title and its note.
import { useSignalEffect } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { plannedSteps } from '../format/run_text';
import { type DrawnSeries, drawnSeries } from '../state/curve_store';
import type { Live } from '../state/live';
import { cursorStep, hoveredRun, zoom, zoomTo } from '../state/selection';
import { theme } from '../state/theme';
import { stepRange } from './axes';
import { chartData } from './chart_data';
import './charts.css';
import { CurvePlot } from './curve_plot';
import type { LineLook } from './palette';
import { pointNote, stepNote } from './point_note';

interface Props {
  live: Live;
  series: DrawnSeries;
  title: string;
}

const fallbackLook: LineLook = { colour: '#7f8897', dash: undefined };

export function CurveChart({ live, series, title }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<CurvePlot | undefined>(undefined);

  useEffect(() => {
    const parent = box.current;
    if (!parent) return;
    const made = new CurvePlot(parent, {
      cursor: (step) => {
        cursorStep.value = step;
      },
      zoom: (from, to) => zoomTo({ from, to }),
      unzoom: () => zoomTo(undefined),
    });
    plot.current = made;
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(parent);
    draw(made, live, series);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, [live, series]);

  useSignalEffect(() => draw(plot.current, live, series));
  useSignalEffect(() => {
    const hovered = hoveredRun.value;
    const line = hovered === undefined ? -1 : live.drawn.value.indexOf(hovered);
    plot.current?.highlight(line < 0 ? undefined : line);
  });

  const moveCursor = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    plot.current?.moveCursor(event.shiftKey ? 10 * by : by);
  };

  const [from, to] = xRange(live);
  return (
    <figure class="chart" data-series={series}>
      <figcaption>{title}</figcaption>
      {/* The plot is a slider over steps: arrow keys move its cursor. */}
      <div
        ref={box}
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={`${title}; step under the cursor`}
        aria-valuemin={from}
        aria-valuemax={to}
        aria-valuenow={cursorStep.value ?? to}
        onKeyDown={moveCursor}
      />
      <Note live={live} series={series} />
    </figure>
  );
}

function Note({ live, series }: { live: Live; series: DrawnSeries }) {
  live.curves.version.value;
  const drawn = live.drawn.value;
  const curves = drawn.flatMap((run) => live.curves.curve(run)?.series.get(series) ?? []);
  const problem = drawn.map((run) => live.curves.problem(run)).find((text) => text !== '');
  const loading = drawn.some((run) => live.curves.loading(run));
  const here = stepNote(
    cursorStep.value,
    drawn.map((run) => ({
      name: live.runs.peek(run)?.displayName ?? run,
      series: live.curves.curve(run)?.series.get(series),
    })),
  );
  const text = problem
    ? `could not be read: ${problem}; trying again`
    : pointNote(curves) || (loading ? 'reading…' : drawn.length > 0 ? 'no points yet' : '');
  return (
    <div class="note">
      <span class="here" title={here}>
        {here || 'step'}
      </span>
      <span class="points">{text}</span>
    </div>
  );
}

function draw(plot: CurvePlot | undefined, live: Live, series: DrawnSeries): void {
  live.curves.version.value;
  const drawn = live.drawn.value;
  const looks = live.looks.value;
  const range = xRange(live);
  const themeNow = theme.value;
  const curvesOf = (name: DrawnSeries) =>
    drawn.map((run) => live.curves.curve(run)?.series.get(name));
  const curves = curvesOf(series);
  const others = drawnSeries.filter((name) => name !== series).flatMap(curvesOf);
  const abandoned = drawn.flatMap((run) =>
    live.curves.abandoned(run).map((curve) => ({ run, series: curve.series.get(series) })),
  );
  const data = chartData([...curves, ...abandoned.map((one) => one.series)], others);
  plot?.show(
    {
      steps: data.steps,
      range,
      // What attempts left behind comes after all curves, which `highlight` counts.
      lines: [...drawn, ...abandoned.map(({ run }) => run)].map((run, index) => ({
        look: looks.get(run) ?? fallbackLook,
        faint: index >= drawn.length,
        values: data.values[index] ?? [],
        marks: index < drawn.length ? (data.marks[index] ?? []) : [],
        badStep: curves[index]?.firstNonFiniteStep,
      })),
    },
    themeNow,
  );
}

// The same for both charts: they share their x axis.
function xRange(live: Live): [number, number] {
  const range = zoom.value;
  if (range) return [range.from, range.to];
  live.curves.version.value;
  let last = 0;
  let planned = 0;
  for (const run of live.drawn.value) {
    last = Math.max(last, live.curves.curve(run)?.series.get('loss')?.lastStep ?? 0);
    planned = Math.max(planned, plannedSteps(live.runs.peek(run) ?? {}));
  }
  return stepRange(last, planned);
}
