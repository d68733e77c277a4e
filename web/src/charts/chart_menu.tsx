// What can be taken away from a chart: its picture and its numbers.
import { Menu } from '../views/shared/menu';
import { sayProblem } from '../views/shared/said';
import type { CurvePlot } from './curve_plot';
import { download, fileName, picture } from './download';
import type { PointsFile } from './shown_points';
import { svgOf } from './svg_chart';

interface Props {
  id: string;
  title: string;
  plot(): CurvePlot | undefined;
  csv(): PointsFile;
}

export function ChartMenu({ id, title, plot, csv }: Props) {
  const style = () => getComputedStyle(document.documentElement);
  const png = async () => {
    const canvas = plot()?.canvas();
    if (canvas) download(`${fileName(id)}.png`, await picture(canvas, title, style()), 'image/png');
  };
  const svg = () => {
    const content = plot()?.content;
    if (!content) return;
    const colour = (name: string) => style().getPropertyValue(name).trim();
    const colours = {
      background: colour('--background'),
      text: colour('--text'),
      grid: colour('--line'),
    };
    download(`${fileName(id)}.svg`, svgOf(title, content, colours), 'image/svg+xml');
  };
  const points = () => {
    const { text, name } = csv();
    download(`${fileName(...name)}.csv`, text, 'text/csv');
  };
  return (
    <TakeAway
      what={title}
      ways={[
        ['PNG', png],
        ['SVG', svg],
        ['CSV', points],
      ]}
    />
  );
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
