// The end of the trainer's log. It is read again when the run makes progress and not by a clock.
import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatCount } from '../../format/format';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { ReadLogResponseJson } from '../../gen/normlab/v1/run_service_pb';
import { addPiece, keptBytes, type LogText, noLog, textOf } from '../../series/log_text';
import type { Live } from '../../state/live';
import { address, setQuery } from '../../state/router';

// Progress is told several times a second.
const shortestPause = 1_000;

export function LogTail({ live, run }: { live: Live; run: RunJson }) {
  const attempts = (run.attempts ?? []).map((attempt) => attempt.number ?? 0);
  const latest = Math.max(0, ...attempts);
  const chosen = Number(address.value.query.log ?? 0);
  const attempt = attempts.includes(chosen) ? chosen : latest;
  const box = useRef<HTMLDivElement>(null);
  const isSeen = useSeen(box);
  const { log, problem } = useLog(live, run, attempt, isSeen);
  const text = textOf(log);
  // Stays at the end, unless somebody has scrolled up to read.
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  const scroll = () => {
    const { scrollTop = 0, scrollHeight = 0, clientHeight = 0 } = box.current ?? {};
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < 20;
  };
  // The latest is followed, whichever that comes to be.
  const choose = (number: string) =>
    setQuery({ log: number === String(latest) ? undefined : number });
  if (latest === 0) return <p class="secondary">no attempt has started</p>;
  return (
    <>
      <p class="secondary">
        {attempts.length > 1 ? (
          <label>
            attempt{' '}
            <select value={String(attempt)} onChange={(event) => choose(event.currentTarget.value)}>
              {attempts.map((number) => (
                <option key={number} value={String(number)}>
                  {number}
                </option>
              ))}
            </select>
          </label>
        ) : null}{' '}
        {problem || (log.begin > 0 ? `the last ${formatCount(log.bytes.length)} bytes` : '')}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keys */}
      <div ref={box} class="log" role="log" tabIndex={0} aria-label="log" onScroll={scroll}>
        {text || 'nothing was written yet'}
      </div>
    </>
  );
}

/** Whether some of an element is on the screen. */
function useSeen(element: RefObject<HTMLElement | null>): boolean {
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver((entries) =>
      setSeen(entries.some(({ isIntersecting }) => isIntersecting)),
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element.current]);
  return isSeen;
}

// Nothing is read for somebody who does not look.
function useLog(
  live: Live,
  run: RunJson,
  attempt: number,
  isSeen: boolean,
): { log: LogText; problem: string } {
  const [log, setLog] = useState<LogText>(noLog);
  const [problem, setProblem] = useState('');
  const held = useRef<LogText>(noLog);
  const nextRead = useRef(0);
  const id = run.id ?? '';
  useEffect(() => {
    if (attempt === 0 || !isSeen) return;
    if (held.current.attempt !== attempt) held.current = noLog;
    const request = new AbortController();
    const read = async () => {
      nextRead.current = Date.now() + shortestPause;
      try {
        held.current = await readOn(live, id, attempt, held.current, request.signal);
        setLog(held.current);
        setProblem('');
      } catch (error) {
        if (!request.signal.aborted) {
          setProblem(`could not be read: ${error instanceof Error ? error.message : error}`);
        }
      }
    };
    const timer = setTimeout(read, Math.max(0, nextRead.current - Date.now()));
    return () => {
      clearTimeout(timer);
      request.abort();
    };
  }, [live, id, attempt, isSeen, run.state, run.progress?.step]);
  return { log: log.attempt === attempt ? log : noLog, problem };
}

async function readOn(
  live: Live,
  id: string,
  attempt: number,
  held: LogText,
  signal: AbortSignal,
): Promise<LogText> {
  let log = held;
  for (;;) {
    // The first time from the end of the log, and then what has come since.
    const offset = log === noLog ? -keptBytes : log.end;
    const query = new URLSearchParams({
      attempt: String(attempt),
      offset: String(offset),
      max_bytes: String(keptBytes),
    });
    const path = `/runs/${encodeURIComponent(id)}/log?${query}`;
    const piece = await live.client.call<ReadLogResponseJson>('GET', path, undefined, signal);
    log = addPiece(log, piece);
    if (!piece.data || log.end >= Number(piece.size ?? 0)) return { ...log, attempt };
  }
}
