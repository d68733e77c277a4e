// A chart with one line for each group of runs that differ only in their seed.
import { type Board, setCursor, stepsShown, stepUnderCursor, xRange } from '../../charts/board';
import { Chart } from '../../charts/chart';
import { cursorNote } from '../../charts/cursor_text';
import { type CurveBand, curveContent, derivedCurve } from '../../charts/lines';
import type { PlotContent } from '../../charts/plot_content';
import { xUnits } from '../../charts/tick_text';
import type { SeedGroup } from '../../compare/seeds';
import { formatCount, formatValue } from '../../format/format';
import { csvOf } from '../../series/csv';
import { type Band, medianBand } from '../../series/derived';
import { bandUnderCursor } from './cursor_cells';

interface Props {
  board: Board;
  groups: readonly SeedGroup[];
  series: string;
  title: string;
}

const fallbackLook = { colour: '#7f8897', dash: undefined };

export function GroupChart({ board, groups, series, title }: Props) {
  const made = () => bandsOf(board, groups, series);
  const csv = () =>
    csvOf(
      ['group', 'step', 'median', 'low', 'high', 'runs'],
      made().flatMap(({ group, band }) =>
        band.steps.map((step, index) => [
          group.name,
          step,
          band.median[index],
          band.low[index],
          band.high[index],
          band.count[index],
        ]),
      ),
    );
  return (
    <Chart
      key={groups.map(({ key, runs }) => `${key}${runs.length}`).join()}
      id={series}
      title={`${title}, median over seeds`}
      content={() => contentOf(board, made())}
      range={() => xRange(board)}
      cursor={(x) => setCursor(board, x)}
      csv={csv}
    >
      <div class="note">
        <Here board={board} groups={groups} series={series} />
        <span class="points">{noteOf(groups)}</span>
      </div>
    </Chart>
  );
}

function Here({ board, groups, series }: Omit<Props, 'title'>) {
  const drawn = drawnGroups(board, groups);
  const values = drawn.flatMap(({ group, runs, first }) => {
    const band = bandUnderCursor(board, runs, series);
    const step = stepUnderCursor(board, first);
    if (!band || step === undefined) return [];
    const [median, low, high] = [band.median, band.low, band.high].map(([one]) => formatValue(one));
    const text = runs.length > 1 ? `${median}, ${low} to ${high}` : `${median}`;
    return [{ name: group.name, step, text, isSpecial: false }];
  });
  const text = cursorNote(values, drawn.length);
  return (
    <span class="here" title={text}>
      {text || xUnits[board.look.value.x]}
    </span>
  );
}

interface DrawnGroup {
  group: SeedGroup;
  /** Those that are drawn; the first of them gives the colour and the axis. */
  runs: string[];
  first: string;
}

function drawnGroups(board: Board, groups: readonly SeedGroup[]): DrawnGroup[] {
  const drawn = new Set(board.runs.value);
  return groups.flatMap((group) => {
    const runs = group.runs.flatMap(({ id }) => (id && drawn.has(id) ? [id] : []));
    const [first] = runs;
    return first === undefined ? [] : [{ group, runs, first }];
  });
}

interface GroupBand {
  group: SeedGroup;
  /** The first of its runs that is drawn gives the colour. */
  first: string;
  band: Band;
}

function bandsOf(board: Board, groups: readonly SeedGroup[], series: string): GroupBand[] {
  board.curves.depend();
  return drawnGroups(board, groups).map(({ group, first, runs }) => {
    const curves = runs.flatMap(
      (run) => board.curves.zoomed(run, series, stepsShown(board, run))?.drawn ?? [],
    );
    return { group, first, band: medianBand(curves) };
  });
}

function contentOf(board: Board, groups: readonly GroupBand[]): PlotContent {
  const looks = board.live.looks.value;
  const curve = ({ group, first, band }: GroupBand, values: readonly number[]) =>
    derivedCurve(
      group.key,
      group.name,
      looks.get(first) ?? fallbackLook,
      { steps: band.steps, values },
      board.scaleOf(first),
    );
  const bands = groups
    .filter(({ group }) => group.runs.length > 1)
    .map((one): CurveBand => ({ low: curve(one, one.band.low), high: curve(one, one.band.high) }));
  const lines = groups.map((one) => curve(one, one.band.median));
  return curveContent(lines, [], board.look.value, xRange(board), bands);
}

function noteOf(groups: readonly SeedGroup[]): string {
  const most = Math.max(0, ...groups.map(({ runs }) => runs.length));
  const band = most >= 5 ? 'band: quartiles' : 'band: lowest to highest';
  const many = groups.length === 1 ? 'group' : 'groups';
  return `${formatCount(groups.length)} ${many}, up to ${formatCount(most)} seeds, ${band}`;
}
