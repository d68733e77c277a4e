// Colours of curves. The first three are the article's: Pre, Post, Post with warmup; all ten can be
// told apart by readers with the common kinds of colour blindness, on white and on near-black.

export const palette = [
  '#2563eb',
  '#dc5a3a',
  '#138a72',
  '#a855f7',
  '#b7861b',
  '#d6438a',
  '#0e9fc4',
  '#8a5a3c',
  '#7f8897',
  '#7a9a1d',
] as const;

/** Settings of a line; after ten runs the colours come again, dashed. */
export interface LineLook {
  colour: string;
  dash: number[] | undefined;
}

const looks: LineLook[] = [undefined, [6, 3], [2, 3]].flatMap((dash) =>
  palette.map((colour) => ({ colour, dash })),
);

/**
 * Gives each selected run a look of its own. A run keeps what it had in `previous` while that is
 * free, so that taking one run away recolours no other; a run with a colour of its own gets that.
 */
export function assignLooks(
  selected: readonly string[],
  previous: ReadonlyMap<string, LineLook>,
  ownColour: (run: string) => string | undefined,
): Map<string, LineLook> {
  const assigned = new Map<string, LineLook>();
  const taken = new Set<string>();
  const key = (look: LineLook) => `${look.colour} ${look.dash?.join() ?? ''}`;
  const give = (run: string, look: LineLook | undefined) => {
    if (!look || assigned.has(run) || taken.has(key(look))) return;
    taken.add(key(look));
    assigned.set(run, look);
  };
  for (const run of selected) {
    const colour = ownColour(run);
    if (colour && /^#[0-9a-f]{6}$/i.test(colour)) give(run, { colour, dash: undefined });
  }
  for (const run of selected) give(run, previous.get(run));
  for (const run of selected) {
    for (const look of looks) give(run, look);
    if (!assigned.has(run)) assigned.set(run, looks[0] as LineLook);
  }
  return assigned;
}
