// A number with its unit on hover, a time with UTC on hover, and an id that a click copies.
import { formatTime, formatUtc } from '../../format/format';
import { say } from './said';

/** `unit` in words: "nats per token", "bytes". `exact`: the whole number, where `text` is short. */
export function Quantity({ text, unit, exact }: { text: string; unit: string; exact?: string }) {
  return <span title={exact === undefined ? unit : `${exact} ${unit}`}>{text}</span>;
}

/** Local time; nothing for a time that has not come. `time` as in JSON. */
export function TimeText({ time }: { time: string | undefined }) {
  if (!time) return null;
  const date = new Date(time);
  return (
    <time dateTime={time} title={formatUtc(date)}>
      {formatTime(date)}
    </time>
  );
}

/** The last six characters of an id, which tell runs apart; a click copies the whole. */
export function IdText({ id }: { id: string }) {
  const copy = () => {
    navigator.clipboard?.writeText(id).then(
      () => say('copied'),
      () => say('the browser does not let this page copy'),
    );
  };
  return (
    <button type="button" class="id" title={`${id}\nclick to copy`} onClick={copy}>
      {id.slice(-6)}
    </button>
  );
}
