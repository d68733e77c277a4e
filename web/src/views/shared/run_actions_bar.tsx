// What can be done with some runs, as buttons; the destructive ones ask once, in place.
import { useRef } from 'preact/hooks';
import { formatCount } from '../../format/format';
import type { RunJson } from '../../gen/normlab/v1/run_pb';
import type { Live } from '../../state/live';
import {
  doWithAll,
  labelAction,
  mayChange,
  outcomeText,
  type RunAction,
  runActions,
} from '../../state/run_actions';
import { ConfirmButton } from './confirm_button';
import { Menu } from './menu';
import { say, sayProblem } from './said';

/** With many runs it is said now and then how far it is. */
const saidEvery = 50;

/** These are buttons; the others are in a menu. */
const first = new Set(['cancel', 'pause', 'probe', 'resume', 'retry']);

export function RunActionsBar({ live, ids }: { live: Live; ids: readonly string[] }) {
  const { own, possible } = actionsOf(live, ids);
  if (own.length === 0) return null;
  const buttons = possible.filter(({ action }) => first.has(action.name));
  const others = possible.filter(({ action }) => !first.has(action.name));
  return (
    <span class="actions">
      {buttons.map((one) => (
        <ActionButton key={one.action.name} live={live} {...one} />
      ))}
      <Menu label="more ▾" title="more that can be done with these runs">
        {(close) => <ActionList live={live} possible={others} own={own} then={close} />}
      </Menu>
    </span>
  );
}

/** All of it below each other, for a menu of its own; `then` is called when something was chosen. */
export function RunActionList({
  live,
  ids,
  then,
}: {
  live: Live;
  ids: readonly string[];
  then: () => void;
}) {
  const { own, possible } = actionsOf(live, ids);
  if (own.length === 0) return null;
  return <ActionList live={live} possible={possible} own={own} then={then} />;
}

interface PossibleAction {
  action: RunAction;
  runs: readonly RunJson[];
  /** All runs that are meant, and not only some of them. */
  isOfAll: boolean;
}

interface ListProps {
  live: Live;
  possible: readonly PossibleAction[];
  own: readonly RunJson[];
  then: () => void;
}

function ActionList({ live, possible, own, then }: ListProps) {
  return (
    <div class="more-actions">
      {possible.map((one) => (
        <ActionButton key={one.action.name} live={live} {...one} then={then} />
      ))}
      <LabelForm live={live} runs={own} then={then} />
    </div>
  );
}

/** Runs that this user may change, and what can be done with which of them. */
function actionsOf(live: Live, ids: readonly string[]) {
  const runs = ids.flatMap((id) => live.runs.get(id) ?? []);
  const own = runs.filter((run) => mayChange(run, live.user.value, live.role.value));
  const possible: PossibleAction[] = runActions.flatMap((action) => {
    const those = own.filter((run) => action.applies(run));
    return those.length > 0 ? [{ action, runs: those, isOfAll: those.length === runs.length }] : [];
  });
  return { own, possible };
}

interface ButtonProps extends PossibleAction {
  live: Live;
  then?: () => void;
}

function ActionButton({ live, action, runs, isOfAll, then }: ButtonProps) {
  const act = () => {
    then?.();
    start(live, action, runs);
  };
  const count = runs.length === 1 ? '1 run' : `${runs.length} runs`;
  const label = isOfAll ? action.name : `${action.name} ${runs.length}`;
  if (action.confirm) {
    return <ConfirmButton label={label} question={`${action.name} ${count}?`} act={act} />;
  }
  return (
    <button type="button" onClick={act}>
      {label}
    </button>
  );
}

function LabelForm({
  live,
  runs,
  then,
}: {
  live: Live;
  runs: readonly RunJson[];
  then: () => void;
}) {
  const input = useRef<HTMLInputElement>(null);
  const labels = [...new Set(runs.flatMap((run) => run.labels ?? []))].sort();
  const submit = (event: Event) => {
    event.preventDefault();
    const label = input.current?.value.trim();
    if (!label) return;
    then();
    start(live, labelAction(label, true), runs);
  };
  return (
    <form class="label-form" onSubmit={submit}>
      <label>
        label <input ref={input} type="text" autocomplete="off" spellcheck={false} />
      </label>
      {labels.map((label) => (
        <button
          key={label}
          type="button"
          title={`take the label ${label} away`}
          onClick={() => start(live, labelAction(label, false), runs)}
        >
          {label} ✕
        </button>
      ))}
    </form>
  );
}

function start(live: Live, action: RunAction, runs: readonly RunJson[]): void {
  const those = runs.filter((run) => action.applies(run));
  const progress = (asked: number) => {
    if (asked % saidEvery === 0) {
      say(`${action.name}: ${formatCount(asked)} of ${formatCount(those.length)} runs…`);
    }
  };
  doWithAll(live.client, action, those, progress).then((outcome) => {
    const text = outcomeText(action, outcome);
    if (outcome.problems.length > 0) sayProblem(action.name, text);
    else if (text !== '') say(text);
  });
}
