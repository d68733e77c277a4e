// Blocks over steps, with the input at the bottom: where in the network something happens, and when.
import { type Signal, useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { type Board, setCursor, stepsShown, xRange } from '../charts/board';
import { TakeAway } from '../charts/chart_menu';
import { download, fileName } from '../charts/download';
import { pageColours, pictureOf, pictureWays } from '../charts/picture';
import { type PointsFile, partName, shownPoints } from '../charts/shown_points';
import { SvgPen } from '../charts/svg_pen';
import { xUnits } from '../charts/tick_text';
import { formatCount, formatValue } from '../format/format';
import { csvOf } from '../series/csv';
import { needsDetail } from '../series/zoomed';
import type { CurveSet } from '../state/curve_set';
import { theme } from '../state/theme';
import './blocks.css';
import { notMeasured } from './depth_profile';
import {
  drawColourBar,
  drawHeatmap,
  type HeatmapScene,
  type Ink,
  margins,
  placeAt,
} from './draw_heatmap';
import { type BlockCurve, blockGrid, type ColourRange, colourRange, columnAt } from './grid';
import { ColourBar, CursorLine } from './heatmap_parts';
import { type Block, type BlockMetric, seriesOf } from './metrics';
import { useSize } from './use_size';

interface Place {
  row: number;
  step: number;
}

interface Props {
  board: Board;
  run: string;
  curves: CurveSet;
  blocks: readonly Block[];
  metric: BlockMetric;
  /** Spanned by the colours, where several heatmaps share them; undefined: this run's own. */
  colours?: ColourRange | undefined;
  /** Says whose it is, beside others. */
  named?: boolean;
  /** The step of the depth profile. */
  step: number | undefined;
  onStep(step: number): void;
}

/** The same for profiles: what lies beyond the zoom is thinned as it is held. */
export function profileCurves(
  curves: CurveSet,
  run: string,
  blocks: readonly Block[],
  metric: BlockMetric,
  range?: { from: number; to: number },
): (BlockCurve | undefined)[] {
  return blockCurves(curves, run, blocks, metric, range).map((curve, index) => {
    const held = curves.held(run, seriesOf(blocks[index] as Block, metric));
    return curve && { ...curve, thinned: needsDetail(held, { from: 0, to: 0 }) };
  });
}

/** The curves of a metric, a block each, as far as they are here. */
export function blockCurves(
  curves: CurveSet,
  run: string,
  blocks: readonly Block[],
  metric: BlockMetric,
  range?: { from: number; to: number },
): (BlockCurve | undefined)[] {
  return blocks.map((block) => {
    const drawn = curves.zoomed(run, seriesOf(block, metric), range)?.drawn;
    if (!drawn) return undefined;
    const { steps, values } = drawn;
    return { steps, values, thinned: needsDetail(drawn, { from: 0, to: 0 }) };
  });
}

export function Heatmap(props: Props) {
  const { board, run, curves, blocks, metric } = props;
  const name = board.live.runs.peek(run)?.displayName ?? run;
  const [box, size] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  // Not a state of this component, which is costly to render.
  const here = useSignal<Place | undefined>(undefined);
  curves.depend();
  const scene = sceneOf(props, size.width);
  const shade = theme.value;
  useEffect(() => {
    if (canvas.current && size.width > 0) paint(canvas.current, size, scene);
  }, [scene, shade, size]);

  const at = (event: MouseEvent) =>
    placeAt(event.offsetX, event.offsetY, size.width, size.height, scene);
  const move = (event: MouseEvent) => {
    const place = at(event);
    here.value = place;
    setCursor(board, place && board.scaleOf(run).of(place.step));
  };
  const leave = () => {
    here.value = undefined;
    setCursor(board, undefined);
  };
  const click = (event: MouseEvent) => {
    const place = at(event);
    const column = place ? columnAt(scene.grid, place.step) : -1;
    if (column >= 0) props.onStep(scene.grid.steps[column] as number);
  };
  const press = (event: KeyboardEvent) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 }[event.key];
    const { steps } = scene.grid;
    if (by === undefined || steps.length === 0) return;
    event.preventDefault();
    const now = columnAt(scene.grid, props.step ?? Number.POSITIVE_INFINITY);
    props.onStep(steps[Math.min(steps.length - 1, Math.max(0, now + by))] as number);
  };
  const title = `${metric.title} by block: ${name}`;
  const picture = () => {
    const { width, height } = size;
    const colours = pageColours();
    const ink = inkOf(colours);
    const pen = new SvgPen();
    drawHeatmap(pen, width, height, scene, ink);
    drawColourBar(pen, margins.left, height + 6, scene, ink);
    const note = `by block, the input at the bottom, and ${xUnits[scene.x]} · ${noteOf(props, scene)}`;
    return pictureOf(pen.content(), width, height + 24, { title, legend: [], note }, colours);
  };
  const csv = () => {
    const { text, name: csvName } = cells(props);
    download(`${fileName(...csvName)}.csv`, text, 'text/csv');
  };
  return (
    <figure class="chart" data-blocks={metric.name}>
      <figcaption title={metric.help}>
        <span class="title" title={name}>
          {props.named ? `${name}: ` : ''}
          {metric.title} by block and step
        </span>
        {scene.grid.steps.length > 0 ? <ColourBar scene={scene} /> : null}
        <TakeAway
          what={`${metric.title} by block`}
          ways={[...pictureWays(() => [metric.name, 'blocks'], picture), ['CSV', csv]]}
        />
      </figcaption>
      {/* A slider over steps as well: it moves the profile's step. */}
      <div
        ref={box}
        class="plot heatmap"
        role="slider"
        tabIndex={0}
        aria-label={`${metric.title} by block and step; step of the depth profile`}
        aria-valuemin={scene.grid.steps[0] ?? 0}
        aria-valuemax={scene.grid.steps.at(-1) ?? 0}
        aria-valuenow={props.step ?? scene.grid.steps.at(-1) ?? 0}
        onMouseMove={move}
        onMouseLeave={leave}
        onClick={click}
        onKeyDown={press}
      >
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${metric.title} of ${blocks.length} blocks at ${scene.grid.steps.length} steps, from ${formatValue(scene.colours.low)} to ${formatValue(scene.colours.high)}`}
        />
        <CursorLine board={board} run={run} size={size} step={props.step} />
      </div>
      <div class="note">
        <Here here={here} scene={scene} metric={metric} />
        <span class="points">{noteOf(props, scene)}</span>
      </div>
    </figure>
  );
}

function sceneOf(props: Props, width: number): HeatmapScene {
  const { board, run, curves, blocks, metric } = props;
  const range = xRange(board);
  const scale = board.scaleOf(run);
  const shown = stepsShown(board, run) ?? {
    from: Math.max(0, Math.floor(scale.stepAt(range[0]))),
    to: Math.ceil(scale.stepAt(range[1])),
  };
  const found = blockCurves(curves, run, blocks, metric, stepsShown(board, run));
  const grid = blockGrid(found, shown, Math.max(50, width));
  const own = colourRange(grid.values, metric.scale);
  return {
    grid,
    blocks,
    colours: props.colours ? { ...own, low: props.colours.low, high: props.colours.high } : own,
    scale: metric.scale,
    range,
    x: board.look.value.x,
    xScale: scale,
  };
}

function paint(
  canvas: HTMLCanvasElement,
  size: { width: number; height: number },
  scene: HeatmapScene,
) {
  const ratio = devicePixelRatio;
  canvas.width = size.width * ratio;
  canvas.height = size.height * ratio;
  const context = canvas.getContext('2d');
  if (!context) return;
  context.scale(ratio, ratio);
  drawHeatmap(context, size.width, size.height, scene, inkOf(pageColours()));
  canvas.dispatchEvent(new CustomEvent('painted', { detail: scene, bubbles: true }));
}

interface HereProps {
  here: Signal<Place | undefined>;
  scene: HeatmapScene;
  metric: BlockMetric;
}

function Here({ here, scene, metric }: HereProps) {
  const place = here.value;
  return <span class="here">{(place && cellText(scene, metric, place)) || 'step'}</span>;
}

function inkOf({ secondary, grid }: { secondary: string; grid: string }): Ink {
  return { text: secondary, line: grid };
}

function cellText(scene: HeatmapScene, metric: BlockMetric, { row, step }: Place): string {
  const block = scene.blocks[row];
  const column = columnAt(scene.grid, step);
  if (!block || column < 0) return '';
  const value = scene.grid.values[row * scene.grid.steps.length + column];
  const measured = scene.grid.steps[column] as number;
  const number = value === undefined ? 'no point' : formatValue(value);
  return `block ${block.label}, step ${formatCount(measured)}: ${metric.title} ${number}`;
}

function noteOf({ curves, run, metric, blocks }: Props, scene: HeatmapScene): string {
  const problem = curves.problem(run);
  if (problem) return `could not be read: ${problem}; trying again`;
  if (scene.grid.steps.length === 0) {
    if (curves.loading(run)) return 'reading…';
    return notMeasured(metric);
  }
  const { offScale, nonFinite } = scene.colours;
  const { steps, each } = scene.grid;
  const columns = `${blocks.length} blocks × ${formatCount(steps.length)}`;
  const parts = [
    each === 1 ? `${columns} steps` : `${columns} columns, each the largest of ${each} steps`,
  ];
  if (nonFinite > 0) parts.push(`${formatCount(nonFinite)} not finite (red)`);
  if (offScale > 0) parts.push(`${formatCount(offScale)} at or below zero (grey)`);
  return parts.join(' · ');
}

function cells({ board, run, curves, blocks, metric }: Props): PointsFile {
  const name = board.live.runs.peek(run)?.displayName ?? run;
  const shown = blocks.map((block) =>
    shownPoints(curves, run, seriesOf(block, metric), stepsShown(board, run)),
  );
  const thinned = shown.some((one) => one.thinned);
  return {
    text: csvOf(
      ['run', 'block', 'step', metric.name],
      shown.flatMap(({ points }, row) =>
        points.steps.map((step, index) => [name, blocks[row]?.label, step, points.values[index]]),
      ),
    ),
    name: [metric.name, 'blocks', ...partName(board.look.peek().x, thinned)],
  };
}
