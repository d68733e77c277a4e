// A chart with one line for each group of runs that differ only in their seed.
import { type Board, stepsShown, stepUnderCursor, xRange } from '../../charts/board';
import { Chart } from '../../charts/chart';
import { cursorNote } from '../../charts/cursor_text';
import { type CurveBand, curveContent, derivedCurve } from '../../charts/lines';
import type { PlotContent } from '../../charts/plot_content';
import { partName, shownPoints, thinnedNote } from '../../charts/shown_points';
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
  const csv = () => {
    const shown = made();
    const rows = shown.flatMap(({ group, first, band }) => {
      const range = stepsShown(board, first);
      const isShown = (step: number) => !range || (step >= range.from && step <= range.to);
      return band.steps.flatMap((step, index) => {
        const { median, low, high, count } = band;
        const row = [group.name, step, median[index], low[index], high[index], count[index]];
        return isShown(step) ? [row] : [];
      });
    });
    const thinned = shown.some((one) => one.thinned);
    return {
      text: csvOf(['group', 'step', 'median', 'low', 'high', 'runs'], rows),
      name: [series, 'median', ...partName(board.look.peek().x, thinned)],
    };
  };
  return (
    <Chart
      key={groups.map(({ key, runs }) => `${key}${runs.length}`).join()}
      id={series}
      title={`${title}, median over seeds`}
      board={board}
      content={() => contentOf(board, made())}
      csv={csv}
      note={() => noteOf(groups, made())}
    >
      <Here board={board} groups={groups} series={series} />
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
  thinned: boolean;
}

function bandsOf(board: Board, groups: readonly SeedGroup[], series: string): GroupBand[] {
  board.curves.depend();
  return drawnGroups(board, groups).map(({ group, first, runs }) => {
    const shown = runs.map((run) => shownPoints(board.curves, run, series, stepsShown(board, run)));
    const band = medianBand(shown.flatMap(({ drawn }) => (drawn.steps.length > 0 ? drawn : [])));
    return { group, first, band, thinned: shown.some(({ thinned }) => thinned) };
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

function noteOf(groups: readonly SeedGroup[], shown: readonly GroupBand[]): string {
  const thinned = shown.some((one) => one.thinned);
  const most = Math.max(0, ...groups.map(({ runs }) => runs.length));
  const band = most >= 5 ? 'band: quartiles' : 'band: lowest to highest';
  const many = groups.length === 1 ? 'group' : 'groups';
  return `${formatCount(groups.length)} ${many}, up to ${formatCount(most)} seeds, ${band}${thinned ? thinnedNote : ''}`;
}
