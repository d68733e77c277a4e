// A chart with its title, its menu and its note. What it draws is a function of signals.
import { useSignalEffect } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { formatCount } from '../format/format';
import { cursorStep, cursorX, hoveredRun, zoomTo } from '../state/selection';
import { theme } from '../state/theme';
import { type Board, setCursor, wholeRange, xRange } from './board';
import { ChartMenu } from './chart_menu';
import { CurvePlot } from './curve_plot';
import type { PlotContent } from './plot_content';
import type { PointsFile } from './shown_points';
import { zoomAround } from './zoom_keys';

interface Props {
  /** Names the chart, also in the names of files. */
  id: string;
  title: string;
  /** Unit of the values, shown on hover. */
  unit?: string;
  /** Whose axis and cursor it shares. */
  board: Board;
  content: () => PlotContent;
  /** The points shown, as CSV; the curves as they are, not smoothed. */
  csv(): PointsFile;
  /** What is written below: how many points there are, and what cannot be seen of them. */
  note(): string;
  /** Beside it, what is under the cursor. */
  children: ComponentChildren;
}

export function Chart({ id, title, unit, board, content, csv, note, children }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<CurvePlot | undefined>(undefined);
  const draw = () => plot.current?.show(content(), theme.value);

  useEffect(() => {
    const parent = box.current;
    if (!parent) return;
    const made = new CurvePlot(parent, {
      cursor: (x) => setCursor(board, x),
      zoom: (from, to) => zoomTo({ from, to }),
      unzoom: () => zoomTo(undefined),
    });
    plot.current = made;
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(parent);
    draw();
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = undefined;
    };
  }, []);

  useSignalEffect(draw);
  useSignalEffect(() => plot.current?.highlight(hoveredRun.value));

  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
    const factor = { '+': 0.5, '=': 0.5, '-': 2 }[event.key];
    if (event.key === 'Escape') zoomTo(undefined);
    if (by === undefined && factor === undefined) return;
    event.preventDefault();
    if (by !== undefined) plot.current?.moveCursor(event.shiftKey ? 10 * by : by);
    if (factor === undefined) return;
    const range = xRange(board);
    const at = cursorX.value ?? (range[0] + range[1]) / 2;
    zoomTo(zoomAround(range, at, factor, wholeRange(board)));
  };

  const [from, to] = xRange(board);
  return (
    <figure class="chart" data-series={id}>
      <figcaption title={unit}>
        <span class="title">{title}</span>
        <ChartMenu id={id} title={title} plot={() => plot.current} {...{ note, csv }} />
      </figcaption>
      {/* The plot is a slider over steps: arrow keys move its cursor, + and - zoom around it. */}
      <div
        ref={box}
        class="plot"
        role="slider"
        tabIndex={0}
        aria-label={`${title}; step under the cursor`}
        aria-valuemin={from}
        aria-valuemax={to}
        aria-valuenow={cursorX.value ?? to}
        aria-valuetext={
          cursorStep.value === undefined ? undefined : `step ${formatCount(cursorStep.value)}`
        }
        aria-keyshortcuts="ArrowLeft ArrowRight PageDown PageUp + - Escape"
        onKeyDown={press}
      />
      <div class="note">
        {children}
        <Note text={note} />
      </div>
    </figure>
  );
}

// Of its own, because it changes with every point that comes.
function Note({ text }: { text: () => string }) {
  const now = text();
  return (
    <span class="points" title={now}>
      {now}
    </span>
  );
}
