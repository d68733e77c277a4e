// What can be taken away from a chart: its picture and its numbers.
import { Menu } from '../views/shared/menu';
import { sayProblem } from '../views/shared/said';
import type { CurvePlot } from './curve_plot';
import { download, fileName } from './download';
import { pageColours, pictureWays } from './picture';
import type { PointsFile } from './shown_points';
import { svgOf } from './svg_chart';
import { xUnits } from './tick_text';

interface Props {
  id: string;
  title: string;
  plot(): CurvePlot | undefined;
  note(): string;
  csv(): PointsFile;
}

export function ChartMenu({ id, title, plot, note, csv }: Props) {
  const picture = () => {
    const content = plot()?.content;
    if (!content) return undefined;
    const below = `over ${xUnits[content.x]} · ${note()}`;
    return svgOf(title, below, content, pageColours());
  };
  const points = () => {
    const { text, name } = csv();
    download(`${fileName(...name)}.csv`, text, 'text/csv');
  };
  return <TakeAway what={title} ways={[...pictureWays(() => [id], picture), ['CSV', points]]} />;
}

interface TakeAwayProps {
  what: string;
  ways: readonly (readonly [string, () => void | Promise<void>])[];
}

export function TakeAway({ what, ways }: TakeAwayProps) {
  const start = async (name: string, take: () => void | Promise<void>) => {
    try {
      await take();
    } catch (error) {
      sayProblem(`${name} of ${what}`, error);
    }
  };
  return (
    <Menu label="↓" title={`download ${what}`}>
      {(close) =>
        ways.map(([name, take]) => (
          <button
            key={name}
            type="button"
            onClick={() => {
              close();
              start(name, take);
            }}
          >
            {name}
          </button>
        ))
      }
    </Menu>
  );
}
