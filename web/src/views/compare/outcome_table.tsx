// What runs amount to, and the settings in which they differ. The table is the charts' legend as well:
// hovering a row highlights its line, its box hides it.
import { computed } from '@preact/signals';
import type { CSSProperties } from 'preact';
import type { Board } from '../../charts/board';
import { type OutcomeKind, outcomes, spreadOf } from '../../compare/outcomes';
import type { SeedGroup } from '../../compare/seeds';
import { formatCount, formatValue } from '../../format/format';
import {
  differingSettings,
  settingNames,
  shortSetting,
  textOfSetting,
} from '../../format/settings';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { Live } from '../../state/live';
import { address, setQuery } from '../../state/router';
import { hoveredRun, selected, toggle } from '../../state/selection';
import { addressOf } from '../../state/url_state';
import { StateLabel } from '../shared/state_label';
import { hidden, toggleHidden } from './comparison';
import { CursorCells, CursorHeads } from './cursor_cells';

interface Props {
  live: Live;
  board: Board;
  runs: readonly RunJson[];
  /** Rows are these; undefined: each run. */
  groups: readonly SeedGroup[] | undefined;
}

// More settings than fit beside the numbers are in the runs' own pages.
const mostSettings = 6;

export function OutcomeTable({ live, board, runs, groups }: Props) {
  const specs = runs.map((run) => run.effectiveSpec);
  // What follows from other settings would only repeat them.
  const given = settingNames(runs.map((run) => run.spec));
  const differing = differingSettings(given, specs).filter(
    ({ name }) => !groups || name !== 'seed',
  );
  const settings = differing.slice(0, mostSettings).map(({ name }) => name);
  const more = differing.slice(mostSettings);
  const rows: readonly SeedGroup[] =
    groups ?? runs.map((run) => ({ key: run.id ?? '', name: run.displayName ?? '', runs: [run] }));
  return (
    <section class="outcomes" aria-label="final and extreme values">
      <table>
        <thead>
          <tr>
            <th scope="col" class="pick">
              <span class="hidden">drawn</span>
            </th>
            <th scope="col">name</th>
            <th scope="col" class="state-column">
              state
            </th>
            {settings.map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
            <CursorHeads />
            {outcomes.map((kind) => (
              <SortHead key={kind.name} kind={kind} />
            ))}
          </tr>
        </thead>
        <tbody>
          {sorted(rows).map((row) => (
            <Row key={row.key} live={live} board={board} {...{ row, settings, more }} />
          ))}
        </tbody>
      </table>
      <p class="secondary">
        {differing.length === 0 && runs.length > 1 && !groups ? 'All settings are the same. ' : ''}
        {more.length > 0 ? `Also differing: ${more.map(valuesText).join('; ')}.` : ''}
      </p>
    </section>
  );
}

// layers 2, 4, 8
function valuesText({ name, values }: { name: string; values: readonly string[] }): string {
  const all = [...new Set(values)];
  const shown = all.slice(0, mostSettings).map((text) => text || 'none');
  return `${name} ${shown.join(', ')}${all.length > shown.length ? ', …' : ''}`;
}

/** sort=final_loss or sort=-final_loss, the largest first; else in the order of the address. */
const order = computed(() => {
  const text = address.value.query.sort ?? '';
  const kind = outcomes.find(({ name }) => name === text.replace(/^-/, ''));
  return kind && { kind, falls: text.startsWith('-') };
});

function SortHead({ kind }: { kind: OutcomeKind }) {
  const now = order.value?.kind === kind ? order.value : undefined;
  // Rising, falling, not at all.
  const next = !now ? kind.name : now.falls ? undefined : `-${kind.name}`;
  return (
    <th
      scope="col"
      class="number"
      title={kind.unit}
      aria-sort={!now ? 'none' : now.falls ? 'descending' : 'ascending'}
    >
      <button type="button" class="sort" onClick={() => setQuery({ sort: next })}>
        {kind.title}
        {!now ? '' : now.falls ? ' ▾' : ' ▴'}
      </button>
    </th>
  );
}

// Rows without a value come last.
function sorted(rows: readonly SeedGroup[]): readonly SeedGroup[] {
  const by = order.value;
  if (!by) return rows;
  // NaN is worse than everything.
  const value = ({ runs }: SeedGroup) => {
    const median = spreadOf(by.kind, runs)?.median;
    return Number.isNaN(median) ? Infinity : median;
  };
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === undefined || y === undefined)
      return Number(x === undefined) - Number(y === undefined);
    return x === y ? 0 : x < y !== by.falls ? -1 : 1;
  });
}

interface RowProps {
  live: Live;
  board: Board;
  row: SeedGroup;
  settings: readonly string[];
  /** Those that have no column. */
  more: readonly { name: string }[];
}

function Row({ live, board, row, settings, more }: RowProps) {
  const ids = row.runs.flatMap(({ id }) => id ?? []);
  const isSelected = ids.some((id) => selected.value.includes(id));
  const isDrawn = isSelected && !ids.every((id) => hidden.value.has(id));
  const first = ids.find((id) => live.looks.value.has(id));
  const look = first === undefined ? undefined : live.looks.value.get(first);
  const style = look && isDrawn ? ({ '--run': look.colour } as CSSProperties) : {};
  const [only] = row.runs;
  const settingText = ({ name }: { name: string }) =>
    `${name}: ${textOfSetting(only?.effectiveSpec, name)}`;
  // One that is not read yet is read; one that is here is only hidden.
  const pick = () => (isSelected ? toggleHidden(ids) : toggle(ids));
  const hover = (key: string | undefined) => {
    hoveredRun.value = key;
  };
  return (
    <tr
      class={isDrawn ? 'selected' : ''}
      style={style}
      data-run={row.key}
      onMouseEnter={() => hover(isDrawn ? row.key : undefined)}
      onMouseLeave={() => hover(undefined)}
    >
      <td class="pick">
        <input
          type="checkbox"
          checked={isDrawn}
          onChange={pick}
          onFocus={() => hover(isDrawn ? row.key : undefined)}
          onBlur={() => hover(undefined)}
          aria-label={`draw ${row.name}`}
        />
      </td>
      <th scope="row" class="name" title={[row.name, ...more.map(settingText)].join('\n')}>
        {row.runs.length === 1 && only?.id ? (
          <a href={addressOf('run', only.id)}>{row.name}</a>
        ) : (
          <a href={addressOf('compare', '', { runs: ids.join() })}>{row.name}</a>
        )}
      </th>
      <td>{row.runs.length === 1 ? <StateLabel state={only?.state} /> : statesText(row.runs)}</td>
      {settings.map((name) => (
        <td key={name} class="number" title={textOfSetting(only?.effectiveSpec, name)}>
          {shortSetting(textOfSetting(only?.effectiveSpec, name))}
        </td>
      ))}
      <CursorCells board={board} runs={ids.filter((id) => board.runs.value.includes(id))} />
      {outcomes.map((kind) => (
        <td key={kind.name} class="number" title={cellTitle(kind, row.runs)}>
          {cellText(kind, row.runs)}
        </td>
      ))}
    </tr>
  );
}

function valueText(kind: OutcomeKind, value: number): string {
  return kind.name === 'first_bad_step' && Number.isFinite(value)
    ? `⚡\uFE0E ${formatCount(value)}`
    : formatValue(value);
}

function cellText(kind: OutcomeKind, runs: readonly RunJson[]): string {
  const [only] = runs;
  if (runs.length === 1 && only) {
    const value = kind.of(only);
    return value === undefined ? '' : valueText(kind, value);
  }
  const spread = spreadOf(kind, runs);
  return spread ? valueText(kind, spread.median) : '';
}

function cellTitle(kind: OutcomeKind, runs: readonly RunJson[]): string {
  const spread = runs.length > 1 ? spreadOf(kind, runs) : undefined;
  if (!spread) return kind.unit;
  const range = `${formatValue(spread.low)} to ${formatValue(spread.high)}`;
  return `median of ${formatCount(spread.count)} runs, ${range}; ${kind.unit}`;
}

function statesText(runs: readonly RunJson[]): string {
  const ended = runs.filter((run) => run.endTime).length;
  return ended === runs.length
    ? `${formatCount(ended)} ended`
    : `${formatCount(ended)} of ${formatCount(runs.length)} ended`;
}
