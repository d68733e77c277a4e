// What can be done with the run of one row, without selecting it. It stands over the table, whose cells
// would cut it off, at the right end of the row; Escape, a click elsewhere and scrolling close it.
import type { CSSProperties } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { isolated } from '../../format/format';
import type { Live } from '../../state/live';
import { mayChange } from '../../state/run_actions';
import { addressOf } from '../../state/url_state';
import { RunActionList } from '../shared/run_actions_bar';
import { type RowMenuPlace, rowMenu } from './row_menu_state';
import { rowToFocus } from './runs_state';

export function RowMenu({ live }: { live: Live }) {
  const place = rowMenu.value;
  useEffect(() => () => close(), []);
  return place ? <OpenMenu key={place.run} live={live} place={place} /> : null;
}

function close(): void {
  rowMenu.value = undefined;
}

function OpenMenu({ live, place }: { live: Live; place: RowMenuPlace }) {
  const box = useRef<HTMLElement>(null);
  const run = live.runs.get(place.run);
  const isGone = run === undefined;
  useEffect(() => {
    if (isGone) close();
  }, [isGone]);
  // With the drawing and not after it: the next key or click is meant for the menu.
  useLayoutEffect(() => {
    box.current?.querySelector<HTMLElement>('button, input, a')?.focus();
    const elsewhere = (event: Event) => {
      const target = event.target as Element;
      // The button of the row itself closes it by its own click.
      if (!box.current?.contains(target) && !target.closest?.('.do button')) close();
    };
    const scrolled = (event: Event) => {
      if (!box.current?.contains(event.target as Node)) close();
    };
    addEventListener('pointerdown', elsewhere);
    addEventListener('scroll', scrolled, true);
    addEventListener('resize', close);
    return () => {
      removeEventListener('pointerdown', elsewhere);
      removeEventListener('scroll', scrolled, true);
      removeEventListener('resize', close);
    };
  }, []);
  if (!run) return null;
  const toRow = () => {
    rowToFocus.value = place.run;
    close();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    toRow();
  };
  const isOwn = mayChange(run, live.user.value, live.role.value);
  return (
    <section
      ref={box}
      class="row-menu"
      style={styleAt(place)}
      aria-label={`what can be done with ${run.displayName}`}
      onKeyDown={onKeyDown}
    >
      <p class="secondary of">{isolated(run.displayName ?? '')}</p>
      {isOwn ? (
        <RunActionList live={live} ids={[place.run]} then={toRow} />
      ) : (
        <p class="secondary">Only {isolated(run.user ?? '')} and admins change it.</p>
      )}
      {live.role.value === 'viewer' ? null : (
        <a class="button" href={addressOf('submit', '', { from: place.run })}>
          same but…
        </a>
      )}
    </section>
  );
}

// Below the row, or above it where there is more room.
function styleAt({ top, bottom }: RowMenuPlace): CSSProperties {
  const below = innerHeight - bottom;
  return below >= top
    ? { top: `${bottom}px`, maxHeight: `${below - 8}px` }
    : { bottom: `${innerHeight - top}px`, maxHeight: `${top - 8}px` };
}
