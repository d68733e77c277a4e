// A run to submit, or those of a preset: a form made from the declared settings.
import './submit.css';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { PresetJson } from '../../gen/normlab/v1/experiment_service_pb';
import type { Live } from '../../state/live';
import { ownOf } from '../../state/own_fields';
import { ReadOnce } from '../../state/read_once';
import { address, goTo } from '../../state/router';
import { answerOf, SubmitCheck } from '../../state/submit_check';
import { type Base, bodyOf, draftOf, givenOf } from '../../state/submit_form';
import { addressOf } from '../../state/url_state';
import { CopyLink } from '../shared/copy_link';
import { say } from '../shared/said';
import { OwnFields } from './own_fields';
import { SettingFields } from './setting_fields';
import { Summary } from './summary';

export function SubmitView({ live }: { live: Live }) {
  const check = useMemo(
    () =>
      new SubmitCheck((body, isPreset) =>
        live.client.submit(body, isPreset, true).then(({ runs }) => [...runs]),
      ),
    [live],
  );
  useEffect(() => () => check.stop(), [check]);
  const presets = usePresets(live);
  const [isSubmitting, setSubmitting] = useState(false);
  useEffect(() => live.needSettings(), [live]);

  const { query } = address.value;
  const from = query.from ?? '';
  useEffect(() => live.needRun(from), [live, from]);
  const fromRun = from === '' ? undefined : live.runs.get(from);
  const settings = live.settings.value;
  const { user, role } = live;
  const base: Base = useMemo(
    () => ({
      given: givenOf(fromRun, settings),
      own: ownOf(fromRun, user.value, role.value),
    }),
    [fromRun?.spec, settings, user.value, role.value],
  );
  const draft = draftOf(query, base, settings);
  const isReady =
    settings.length > 0 &&
    (from === '' || fromRun !== undefined) &&
    (draft.preset === '' || presets.length > 0);
  const body = bodyOf(draft, settings, presets);
  const text = JSON.stringify(body);
  useEffect(() => {
    if (isReady) check.ask(JSON.parse(text), draft.preset !== '');
  }, [check, isReady, text, draft.preset]);

  const submit = (event: Event) => {
    event.preventDefault();
    setSubmitting(true);
    live.client
      .submit(body, draft.preset !== '', false)
      .then(
        ({ experiment, runs }) => {
          say(runs.length === 1 ? 'submitted' : `${runs.length} runs submitted`);
          if (experiment !== '') goTo('experiment', experiment);
          else goTo('run', runs[0]?.id);
        },
        (error: unknown) => {
          check.answer.value = answerOf(error);
        },
      )
      .finally(() => setSubmitting(false));
  };

  if (live.role.value === 'viewer') return <ForViewers />;
  return (
    <main class="submit" aria-busy={!isReady}>
      <form onSubmit={submit}>
        <div class="fields">
          <div class="title-line">
            <h1>
              {from === '' || live.absent.value.has(from) ? (
                'A new run'
              ) : (
                <>
                  Same as <a href={addressOf('run', from)}>{fromRun?.displayName ?? 'a run'}</a>,
                  but …
                </>
              )}
            </h1>
            <CopyLink />
          </div>
          {from !== '' && !fromRun ? <NoSuchRun live={live} id={from} /> : null}
          {settings.length === 0 ? <NotReady live={live} /> : null}
          {isReady ? (
            <>
              <OwnFields
                live={live}
                draft={draft}
                base={base}
                presets={presets}
                settings={settings.map(({ name }) => name)}
                check={check}
              />
              <SettingFields draft={draft} base={base.given} settings={settings} check={check} />
            </>
          ) : null}
        </div>
        {isReady ? (
          <Summary draft={draft} settings={settings} check={check} isSubmitting={isSubmitting} />
        ) : null}
      </form>
    </main>
  );
}

function NoSuchRun({ live, id }: { live: Live; id: string }) {
  if (!live.absent.value.has(id)) {
    return (
      <p class="secondary" role="status">
        reading that run…
      </p>
    );
  }
  return (
    <>
      <p role="alert">There is no run {id}. It may have been deleted.</p>
      <p>
        <a href={addressOf('submit')}>Begin anew</a>
      </p>
    </>
  );
}

function ForViewers() {
  return (
    <main class="hint">
      <p>You look on here, as a viewer. Who submits runs is a member; an admin makes you one:</p>
      <p>
        <code>normlab user set NAME --role member</code>
      </p>
    </main>
  );
}

function usePresets(live: Live) {
  const read = useMemo(
    () => new ReadOnce<readonly PresetJson[]>([], () => live.client.listPresets()),
    [live],
  );
  useEffect(() => {
    read.need();
    return () => read.stop();
  }, [read]);
  return read.value.value;
}

function NotReady({ live }: { live: Live }) {
  const problem = live.settingsRead.problem.value;
  if (problem === '') return <p class="secondary">reading…</p>;
  return (
    <p class="problem" role="alert">
      The settings could not be read: {problem}; trying again.
    </p>
  );
}
