// A sweep as a table over two settings, coloured by what the runs came to. A cell leads to its run, or
// compares its runs where it has several.
import type { CSSProperties } from 'preact';
import { type ColourRange, colourRange } from '../../blocks/grid';
import { ColourBar } from '../../blocks/heatmap_parts';
import { hex } from '../../blocks/viridis';
import { TakeAway } from '../../charts/chart_menu';
import { download, fileName } from '../../charts/download';
import { pageColours, pictureOf, pictureWays } from '../../charts/picture';
import { SvgPen } from '../../charts/svg_pen';
import {
  drawSweep,
  letterColour,
  type NamedGrid,
  sweepColour,
  sweepRows,
} from '../../compare/draw_sweep';
import { findOutcome, type OutcomeKind, outcomes } from '../../compare/outcomes';
import {
  firstAxes,
  type SweepCell,
  type SweepGrid,
  sweepGrid,
  sweepParts,
} from '../../compare/sweep_grid';
import { formatCount, formatValue } from '../../format/format';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import { csvOf } from '../../series/csv';
import { address, setQuery } from '../../state/router';
import { addressOf } from '../../state/url_state';

const mostTables = 12;

interface Props {
  runs: readonly RunJson[];
  differing: readonly { name: string; values: readonly string[] }[];
}

export function SweepTable({ runs, differing }: Props) {
  const { query } = address.value;
  const first = firstAxes(differing);
  const names = differing.map(({ name }) => name).filter((name) => name !== 'seed');
  const row = names.includes(query.rows ?? '') ? (query.rows ?? '') : first.row;
  const column = names.includes(query.cols ?? '') ? (query.cols ?? '') : first.column;
  const kind = findOutcome(query.of);
  // Three runs with three names are told better by the table of runs.
  if (row === '' || column === '' || row === column || runs.length < 4) return null;
  const parts = sweepParts(runs, names, [row, column]);
  const grids = parts.slice(0, mostTables).map((part) => ({
    name: part.name,
    grid: sweepGrid(part.runs, row, column, kind),
  }));
  // The same colours in all tables.
  const colours = colourRange(
    grids.flatMap(({ grid }) => grid.cells.flat().map((cell) => cell?.spread?.median)),
    'log',
  );
  return (
    <section class="sweep" aria-label={`${kind.title} by ${row} and ${column}`}>
      <div class="tools">
        <Choice label="rows" value={row} names={names} set={(rows) => setQuery({ rows })} />
        <Choice label="columns" value={column} names={names} set={(cols) => setQuery({ cols })} />
        <Choice
          label="colour"
          value={kind.name}
          names={outcomes.map(({ name }) => name)}
          set={(of) => setQuery({ of })}
        />
        <span class="secondary">{kind.unit}</span>
        <ColourBar scene={{ colours, scale: 'log' }} />
        <Files grids={grids} {...{ kind, colours, row, column }} />
      </div>
      <div class="tables">
        {grids.map(({ name, grid }) => (
          <Table key={name} name={name} axes={`${row} ╲ ${column}`} {...{ grid, kind, colours }} />
        ))}
      </div>
      {parts.length > mostTables ? (
        <p class="secondary">
          {formatCount(mostTables)} of {formatCount(parts.length)} tables; the runs differ in too
          many settings to show all.
        </p>
      ) : null}
    </section>
  );
}

interface FilesProps {
  grids: readonly NamedGrid[];
  kind: OutcomeKind;
  colours: ColourRange;
  row: string;
  column: string;
}

function Files({ grids, kind, colours, row, column }: FilesProps) {
  const name = () => ['sweep', kind.name];
  const picture = () => {
    const page = pageColours();
    const pen = new SvgPen();
    const { width, height } = drawSweep(pen, grids, `${row} ╲ ${column}`, colours, page.text);
    const text = { title: `${kind.title} by ${row} and ${column}`, legend: [], note: kind.unit };
    return pictureOf(pen.content(), width, height, text, page);
  };
  const csv = () => {
    const header = ['part', row, column, kind.name, 'low', 'high', 'runs', 'names'];
    download(`${fileName(...name())}.csv`, csvOf(header, sweepRows(grids)), 'text/csv');
  };
  return <TakeAway what="sweep" ways={[...pictureWays(name, picture), ['CSV', csv]]} />;
}

interface TableProps {
  name: string;
  axes: string;
  grid: SweepGrid;
  kind: OutcomeKind;
  colours: ColourRange;
}

function Table({ name, axes, grid, kind, colours }: TableProps) {
  const { rows, columns, cells } = grid;
  return (
    <table>
      {name === '' ? null : <caption>{name}</caption>}
      <thead>
        <tr>
          <th scope="col">{axes}</th>
          {columns.map((text) => (
            <th key={text} scope="col" class="number">
              {text}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {cells.map((some, index) => (
          <tr key={rows[index]}>
            <th scope="row" class="number">
              {rows[index]}
            </th>
            {some.map((cell, at) => (
              <Cell key={columns[at]} cell={cell} kind={kind} colours={colours} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  names: readonly string[];
  set(name: string): void;
}

function Choice({ label, value, names, set }: ChoiceProps) {
  return (
    <label>
      {label}{' '}
      <select aria-label={label} value={value} onChange={(event) => set(event.currentTarget.value)}>
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

interface CellProps {
  cell: SweepCell | undefined;
  kind: OutcomeKind;
  colours: ColourRange;
}

function Cell({ cell, kind, colours }: CellProps) {
  if (!cell) return <td />;
  const ids = cell.runs.flatMap(({ id }) => id ?? []);
  const [only = ''] = ids;
  const href =
    ids.length === 1 ? addressOf('run', only) : addressOf('compare', '', { runs: ids.join() });
  return (
    <td style={cellStyle(cell, colours)} title={titleOf(cell, kind)}>
      <a href={href}>{cell.spread ? formatValue(cell.spread.median) : '…'}</a>
    </td>
  );
}

function cellStyle({ spread }: SweepCell, colours: ColourRange): CSSProperties {
  if (!spread) return {};
  const colour = sweepColour(spread.median, colours);
  return { background: hex(colour), color: letterColour(colour) };
}

function titleOf({ runs, spread }: SweepCell, kind: OutcomeKind): string {
  const names = runs.map((run) => run.displayName).slice(0, 5);
  if (!spread) return `${names.join('\n')}\nno value yet`;
  const range =
    spread.count > 1
      ? `median of ${formatCount(spread.count)}: ${formatValue(spread.low)} to ${formatValue(spread.high)}\n`
      : '';
  return `${kind.title}\n${range}${names.join('\n')}`;
}
