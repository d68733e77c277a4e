// What lies around a heatmap: where the cursor and the profile are, and what the colours mean.
import { type Board, stepUnderCursor, xRange } from '../charts/board';
import { yTick } from '../charts/tick_text';
import { type HeatmapScene, plotBox } from './draw_heatmap';
import { hex, viridis } from './viridis';

interface LineProps {
  board: Board;
  run: string;
  step: number | undefined;
  size: { width: number; height: number };
}

export function CursorLine({ board, run, size, step }: LineProps) {
  const [from, to] = xRange(board);
  const box = plotBox(size.width, size.height);
  const at = (where: number) =>
    box.left + (box.width * (board.scaleOf(run).of(where) - from)) / (to - from);
  const lines = [
    ['profile', step],
    ['cursor', stepUnderCursor(board, run)],
  ] as const;
  return (
    <>
      {lines.map(([kind, where]) => {
        const left = where === undefined ? -1 : at(where);
        if (left < box.left || left > box.left + box.width) return null;
        const style = { left: `${left}px`, top: `${box.top}px`, height: `${box.height}px` };
        return <i key={kind} class={`line ${kind}`} style={style} />;
      })}
    </>
  );
}

export function ColourBar({ scene }: { scene: Pick<HeatmapScene, 'colours' | 'scale'> }) {
  const stops = Array.from({ length: 9 }, (_, index) => hex(viridis(index / 8)));
  const style = { background: `linear-gradient(to right, ${stops.join()})` };
  return (
    <span class="colours" title={`${scene.scale} colour scale`}>
      {yTick(scene.colours.low)}
      <i style={style} />
      {yTick(scene.colours.high)} <span class="secondary">{scene.scale}</span>
    </span>
  );
}
