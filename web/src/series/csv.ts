// Comma-separated values with the same cells as the command line's export: NaN and the infinities
// are words, an empty cell is no value, and a text that a spreadsheet would take for a formula, or
// that begins with ', gets a ' in front, so that taking one away always gives the text back.
export type Cell = string | number | undefined;

export function csvOf(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return `${[header, ...rows].map((row) => row.map(cell).join()).join('\n')}\n`;
}

function cell(value: Cell): string {
  if (value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@']/.test(value) ? `'${value}` : value;
  return /[,"\r\n]|^ | $/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export interface NamedPoints {
  name: string;
  steps: readonly number[];
  values: readonly (number | string)[];
}

/** One row a step, one column a series. */
export function tableRows(run: string, series: readonly NamedPoints[]): Cell[][] {
  const next = series.map(() => 0);
  const rows: Cell[][] = [];
  for (;;) {
    let step = Number.POSITIVE_INFINITY;
    series.forEach(({ steps }, index) => {
      step = Math.min(step, steps[next[index] as number] ?? Number.POSITIVE_INFINITY);
    });
    if (step === Number.POSITIVE_INFINITY) return rows;
    rows.push([
      run,
      step,
      ...series.map(({ steps, values }, index) => {
        const at = next[index] as number;
        if (steps[at] !== step) return undefined;
        next[index] = at + 1;
        return Number(values[at]);
      }),
    ]);
  }
}
