// Value over block at one step: the way back through the network as a picture. Where gradients pass
// unchanged, as along an identity path, it is flat; where every block takes its part, it is tilted.
import { useRef } from 'preact/hooks';
import { linearRange, linearTicks, logRange, logTicks } from '../charts/axes';
import { TakeAway } from '../charts/chart_menu';
import { download, fileName } from '../charts/download';
import type { LineLook } from '../charts/palette';
import { pageColours, pictureOf, pictureWays } from '../charts/picture';
import { yTick } from '../charts/tick_text';
import { formatCount, formatValue } from '../format/format';
import { csvOf } from '../series/csv';
import { hoveredRun } from '../state/selection';
import { theme } from '../state/theme';
import './blocks.css';
import { margins } from './draw_heatmap';
import { colourRange, type Profile, profileNote } from './grid';
import type { BlockMetric } from './metrics';
import { useSize } from './use_size';

export interface ProfileLine {
  run: string;
  name: string;
  look: LineLook;
  profile: Profile | undefined;
}

interface Props {
  metric: BlockMetric;
  lines: readonly ProfileLine[];
  /** Names of the blocks, of the deepest run. */
  labels: readonly string[];
  /** Every value of every step: what the axis spans, so that it stands still while steps change. */
  values: readonly (number | undefined)[];
  /** Steps to choose from. */
  steps: readonly number[];
  step: number | undefined;
  onStep(step: number | undefined): void;
}

export function DepthProfile(props: Props) {
  const { metric, lines, labels, steps } = props;
  const [box, size] = useSize<HTMLDivElement>();
  const svg = useRef<SVGSVGElement>(null);
  const title = `${metric.title} over blocks`;
  const index = Math.max(
    0,
    steps.findLastIndex((one) => one <= (props.step ?? Infinity)),
  );
  const chosen = steps[index];
  const atStep = chosen === undefined ? '' : ` at step ${formatCount(chosen)}`;
  const name = () => [metric.name, 'profile', String(chosen ?? '')];
  const note = profileNote(
    lines.map(({ profile }) => profile),
    metric.scale,
  );
  const picture = () => {
    if (!svg.current) return undefined;
    const content = new XMLSerializer().serializeToString(svg.current.childNodes[0] as Node);
    const text = {
      title: title + atStep,
      legend: lines,
      note: `over blocks${note && ` · ${note}`}`,
    };
    return pictureOf(content, size.width, size.height, text, pageColours());
  };
  return (
    <figure class="chart profile" data-profile={metric.name}>
      <figcaption title={metric.help}>
        <span class="title">
          {title}
          {atStep}
        </span>
        <TakeAway
          what={title}
          ways={[
            ...pictureWays(name, picture),
            ['CSV', () => download(`${fileName(...name())}.csv`, csvOfLines(props), 'text/csv')],
          ]}
        />
      </figcaption>
      <div ref={box} class="plot">
        {steps.length > 0 ? null : <p class="empty secondary">{notMeasured(metric)}</p>}
        <svg
          ref={svg}
          width={size.width}
          height={size.height}
          role="img"
          aria-label={`${title}: ${lines.map(describe).join('; ')}`}
        >
          {steps.length > 0 ? <Drawing {...props} {...size} labels={labels} /> : null}
        </svg>
      </div>
      <div class="note">
        <span class="here">block</span>
        <span class="points">{note}</span>
      </div>
      <div class="slider">
        <label for={`step-${metric.name}`}>step</label>
        <input
          id={`step-${metric.name}`}
          type="range"
          min={0}
          max={Math.max(0, steps.length - 1)}
          value={index}
          disabled={steps.length < 2}
          aria-valuetext={chosen === undefined ? 'none' : formatCount(chosen)}
          onInput={(event) => props.onStep(steps[Number(event.currentTarget.value)])}
        />
        <button
          type="button"
          disabled={props.step === undefined}
          title="Follow the latest step"
          onClick={() => props.onStep(undefined)}
        >
          latest
        </button>
      </div>
    </figure>
  );
}

function Drawing(props: Props & { width: number; height: number }) {
  const { metric, lines, labels, width, height } = props;
  const inside = {
    left: margins.left,
    right: Math.max(margins.left + 1, width - margins.right),
    top: margins.top,
    bottom: Math.max(margins.top + 1, height - margins.bottom),
  };
  const found = colourRange(props.values, metric.scale);
  const limits = metric.scale === 'log' ? logRange : linearRange;
  const [low, high] = limits(found.low, found.high);
  const place = metric.scale === 'log' ? Math.log : (one: number) => one;
  const y = (value: number) =>
    inside.bottom -
    ((place(value) - place(low)) / (place(high) - place(low))) * (inside.bottom - inside.top);
  const x = (block: number) =>
    inside.left + ((block + 0.5) / Math.max(1, labels.length)) * (inside.right - inside.left);
  const ticks =
    metric.scale === 'log' ? logTicks(low, high) : linearTicks(low, high, (height - 36) / 45);
  const each = Math.max(1, Math.ceil((labels.length * 26) / (inside.right - inside.left)));
  theme.value; // the colours of the page follow it
  const style = getComputedStyle(document.documentElement);
  const secondary = style.getPropertyValue('--secondary').trim();
  const grid = style.getPropertyValue('--line').trim();
  return (
    <g font-family="system-ui, sans-serif" font-size="11" fill={secondary}>
      {ticks.map((tick) => (
        <g key={tick}>
          <path d={`M${inside.left} ${y(tick)}H${inside.right}`} stroke={grid} />
          <text x={inside.left - 6} y={y(tick) + 4} text-anchor="end">
            {yTick(tick)}
          </text>
        </g>
      ))}
      {labels.map((label, block) =>
        block % each === 0 ? (
          <text key={label} x={x(block)} y={inside.bottom + 17} text-anchor="middle">
            {label}
          </text>
        ) : null,
      )}
      {lines.map((line) => (
        <Line
          key={line.run}
          line={line}
          x={x}
          y={y}
          edges={inside}
          isLog={metric.scale === 'log'}
        />
      ))}
    </g>
  );
}

interface LineProps {
  line: ProfileLine;
  x(block: number): number;
  y(value: number): number;
  edges: { top: number; bottom: number };
  isLog: boolean;
}

function Line({ line, x, y, edges, isLog }: LineProps) {
  const fits = (value: number | undefined): value is number =>
    value !== undefined && Number.isFinite(value) && (!isLog || value > 0);
  const values = line.profile?.values ?? [];
  let path = '';
  values.forEach((value, block) => {
    if (!fits(value)) return;
    path += `${fits(values[block - 1]) ? 'L' : 'M'}${x(block)} ${y(value)}`;
  });
  const faint = hoveredRun.value !== undefined && hoveredRun.value !== line.run;
  return (
    <g opacity={faint ? 0.3 : 1}>
      <path
        d={path || 'M0 0'}
        fill="none"
        stroke={line.look.colour}
        stroke-width="1.5"
        stroke-dasharray={line.look.dash?.join(' ') ?? 'none'}
      />
      {values.map((value, block) =>
        fits(value) ? (
          <circle key={block} cx={x(block)} cy={y(value)} r="2.5" fill={line.look.colour}>
            <title>{titleOf(line, block)}</title>
          </circle>
        ) : value === undefined ? null : (
          <path
            key={block}
            d={markPath(value, x(block), edges)}
            fill="none"
            stroke={line.look.colour}
            stroke-width="1.5"
          >
            <title>{titleOf(line, block)}</title>
          </path>
        ),
      )}
    </g>
  );
}

function titleOf({ name, profile }: ProfileLine, block: number): string {
  const step = profile?.steps[block];
  const at = step === profile?.step ? '' : ` (step ${formatCount(step ?? 0)})`;
  return `${name}, block ${block + 1}: ${formatValue(profile?.values[block])}${at}`;
}

// As in the charts of curves (marks.ts), at the edge beyond which the value lies.
function markPath(value: number, x: number, { top, bottom }: LineProps['edges']): string {
  if (Number.isNaN(value)) return `M${x - 4} ${bottom - 8}l8 8m0-8l-8 8`;
  if (Number.isFinite(value)) return `M${x - 3} ${bottom - 4}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0`;
  return value > 0 ? `M${x} ${top}l4 8h-8z` : `M${x} ${bottom}l4 -8h-8z`;
}

/** Why there is nothing to see, and what to do about it. */
export function notMeasured({ probe }: BlockMetric): string {
  return probe
    ? 'not measured: ask a running run for a probe, or set probe_every'
    : 'not measured: diagnose_every is off, or no such step has come';
}

// For readers of the screen: how tilted it is.
function describe({ name, profile }: ProfileLine): string {
  const values = (profile?.values ?? []).filter((value) => value !== undefined);
  if (values.length === 0) return `${name}: no points`;
  return `${name}: ${formatValue(values[0])} at the input, ${formatValue(values.at(-1))} at the output`;
}

function csvOfLines({ lines, metric }: Props): string {
  return csvOf(
    ['run', 'step', 'block', metric.name],
    lines.flatMap(({ name, profile }) =>
      (profile?.values ?? []).map((value, block) => [
        name,
        profile?.steps[block],
        block + 1,
        value,
      ]),
    ),
  );
}
