// The runs that must have ended before this one starts: those chosen, and one more by name or id.
import { useEffect, useState } from 'preact/hooks';
import { stateLook } from '../../format/state';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import { type Dependency, dependenciesText, parseDependencies } from '../../state/dependencies';
import type { Live } from '../../state/live';
import { canBeReference, pickRun, referenceFilter } from '../../state/run_ref';
import { addressOf } from '../../state/url_state';

interface Props {
  live: Live;
  id: string;
  /** As the address has them. */
  text: string;
  set: (text: string) => void;
}

/** More runs than this nobody looks through; a name or an id finds any. */
const offered = 100;
const notEnded = 'state=QUEUED OR state=STARTING OR state=RUNNING OR state=PAUSING OR state=PAUSED';

export function AfterField({ live, id, text, set }: Props) {
  const [typed, setTyped] = useState('');
  const [problem, setProblem] = useState('');
  const [offers, setOffers] = useState<readonly RunJson[]>([]);
  const list = parseDependencies(text);
  const put = (next: readonly Dependency[]) => set(dependenciesText(next));

  const offer = () => {
    live.client.listRuns({ filter: notEnded, order: '' }, offered, '').then(
      ({ runs }) => setOffers(runs ?? []),
      () => setOffers([]), // any run can be typed without the list
    );
  };
  const add = async () => {
    const wanted = typed.trim();
    if (wanted === '') return;
    try {
      const run = await find(live, wanted);
      const isThere = list.some((one) => one.run === run.id);
      if (!isThere) put([...list, { run: run.id ?? '', condition: 'ok' }]);
      setTyped('');
      setProblem('');
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'Enter') return;
    event.preventDefault(); // not the whole form
    void add();
  };
  return (
    <div class="after">
      {list.map((one, index) => (
        <AfterRun
          key={one.run}
          live={live}
          one={one}
          change={(next) => put(list.map((other, at) => (at === index ? next : other)))}
          remove={() => put(list.filter((_, at) => at !== index))}
        />
      ))}
      <input
        id={id}
        type="text"
        list={`${id}-runs`}
        autocomplete="off"
        spellcheck={false}
        placeholder={list.length > 0 ? 'one more run' : 'name or id of a run'}
        value={typed}
        aria-describedby={`${id}-help`}
        aria-invalid={problem !== ''}
        onFocus={offer}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onChange={() => void add()}
      />
      <datalist id={`${id}-runs`}>
        {offers.map((run) => (
          <option key={run.id} value={run.id}>
            {run.displayName} · {stateLook(run.state).word}
          </option>
        ))}
      </datalist>
      {problem === '' ? null : (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

interface AfterRunProps {
  live: Live;
  one: Dependency;
  change: (next: Dependency) => void;
  remove: () => void;
}

function AfterRun({ live, one, change, remove }: AfterRunProps) {
  useEffect(() => live.needRun(one.run), [live, one.run]);
  const run = live.runs.get(one.run);
  const name = run?.displayName ?? one.run;
  const look = stateLook(run?.state);
  return (
    <span class="after-run">
      <a href={addressOf('run', one.run)} title={`${name}\n${one.run}`}>
        {name}
      </a>
      {run ? (
        <span class="secondary">
          <span aria-hidden="true">{look.glyph}</span> {look.word}
        </span>
      ) : null}
      <select
        aria-label={`what ${name} must have come to`}
        value={one.condition}
        onChange={(event) =>
          change({ run: one.run, condition: event.currentTarget.value === 'any' ? 'any' : 'ok' })
        }
      >
        <option value="ok">has succeeded</option>
        <option value="any">has ended</option>
      </select>
      <button type="button" class="quiet" aria-label={`not after ${name}`} onClick={remove}>
        ✕
      </button>
    </span>
  );
}

async function find(live: Live, text: string): Promise<RunJson> {
  if (!canBeReference(text)) throw new Error(`there is no run "${text}"`);
  const question = { filter: referenceFilter(text), order: '' };
  const { runs } = await live.client.listRuns(question, offered, '');
  return pickRun(text, runs ?? []);
}
