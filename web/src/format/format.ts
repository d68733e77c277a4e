// Numbers, durations and times as people read them.

const minus = '−';

/** A measured value, three significant digits: 0.0046, 4.15, 1.2e-5. */
export function formatValue(value: number | undefined): string {
  if (value === undefined) return '';
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : `${minus}∞`;
  if (value === 0) return '0';
  const size = Math.abs(value);
  const text =
    size >= 1e5 || size < 1e-4
      ? trimExponent(size.toExponential(2))
      : size >= 1000
        ? String(Math.round(size))
        : size.toPrecision(3);
  return value < 0 ? minus + text : text;
}

/** What a value that is not finite is called, here as in exports. */
export function exactWord(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Infinity' : `${minus}Infinity`;
}

/** A name inside other text: marks of direction in it end with it (U+2068, U+2069). */
export function isolated(name: string): string {
  return `\u2068${name}\u2069`;
}

/** A setting, exactly but short: 2e-3, 0.05, 12. */
export function formatSetting(value: number | string | boolean | undefined): string {
  if (typeof value !== 'number') return value === undefined ? '' : String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.01 || size >= 1e6)) return trimExponent(value.toExponential());
  return String(value);
}

function trimExponent(text: string): string {
  return text.replace(/\.?0*e/, 'e').replace('e+', 'e');
}

/** 1,000,000 */
export function formatCount(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** 2.96 GFLOP: a large number with a letter. */
export function formatLarge(value: number): string {
  const letters = ['', 'k', 'M', 'G', 'T', 'P', 'E'];
  let scaled = value;
  let index = 0;
  while (scaled >= 999.5 && index < letters.length - 1) {
    scaled /= 1000;
    index++;
  }
  const digits = index === 0 ? String(Math.round(scaled)) : scaled.toPrecision(3);
  return `${digits} ${letters[index]}`;
}

/** 8.00 GiB: bytes by powers of 1024, as memory is counted. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let scaled = bytes;
  let index = 0;
  while (scaled >= 999.5 && index < units.length - 1) {
    scaled /= 1024;
    index++;
  }
  return `${index === 0 ? Math.round(scaled) : scaled.toPrecision(3)} ${units[index]}`;
}

/** 4 s, 4 min 12 s, 3 h 5 min, 2 d 4 h. */
export function formatDuration(seconds: number): string {
  if (seconds < 10) return `${Number(Math.max(0, seconds).toFixed(1))} s`;
  const total = Math.round(seconds);
  const days = Math.floor(total / 86400);
  const hours = Math.floor(total / 3600) % 24;
  const minutes = Math.floor(total / 60) % 60;
  const rest = total % 60;
  if (days > 0) return hours > 0 ? `${days} d ${hours} h` : `${days} d`;
  if (hours > 0) return minutes > 0 ? `${hours} h ${minutes} min` : `${hours} h`;
  if (minutes > 0) return rest > 0 ? `${minutes} min ${rest} s` : `${minutes} min`;
  return `${rest} s`;
}

/** Local time of day, with the date when it is not today's: 14:02, 29 Nov 14:02. */
export function formatTime(time: Date, now: Date = new Date()): string {
  const clock = time.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
  if (time.toDateString() === now.toDateString()) return clock;
  return `${time.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })} ${clock}`;
}

/** For the hover text of a time. */
export function formatUtc(time: Date): string {
  return `${time.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
