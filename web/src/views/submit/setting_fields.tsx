// The declared settings as fields, under their headings.
import { useState } from 'preact/hooks';
import { formatSetting } from '../../format/format';
import type { RunSpecJson } from '../../gen/normlab/v1/run_spec_pb';
import { setQuery } from '../../state/router';
import { type Setting, settingOf } from '../../state/settings';
import type { SubmitCheck } from '../../state/submit_check';
import {
  changedSettings,
  counts,
  type Draft,
  queryValue,
  settingOfField,
} from '../../state/submit_form';
import { SettingField } from './setting_field';

interface Props {
  draft: Draft;
  /** Settings of the run that it is like. */
  base: Readonly<Record<string, string>>;
  settings: readonly Setting[];
  check: SubmitCheck;
}

export function SettingFields({ draft, base, settings, check }: Props) {
  const [words, setWords] = useState('');
  const [isShort, setShort] = useState(false);
  const answer = check.answer.value;
  const effective: RunSpecJson | undefined = answer?.runs[0]?.effectiveSpec;
  const textOf = (setting: Setting) =>
    draft.given[setting.name] ??
    formatSetting(settingOf(effective, setting.name) ?? setting.default);
  const problems = new Map(
    (answer?.problems ?? []).map(({ field, description }) => [settingOfField(field), description]),
  );
  const changed = new Set(changedSettings(draft, settings));
  const wanted = words.trim().toLowerCase();
  const isShown = (setting: Setting) => {
    if (problems.has(setting.name)) return true;
    if (isShort && !changed.has(setting)) return false;
    if (wanted !== '') return `${setting.name} ${setting.help}`.toLowerCase().includes(wanted);
    return draft.given[setting.name] !== undefined || counts(setting, settings, textOf);
  };
  const shown = settings.filter(isShown);
  const groups = [...new Set(shown.map((setting) => setting.group))];
  return (
    <>
      <div class="find">
        <input
          type="search"
          aria-label="find a setting"
          placeholder="find a setting"
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
        />
        <label>
          <input type="checkbox" checked={isShort} onChange={() => setShort(!isShort)} /> only what
          differs from the defaults ({changed.size})
        </label>
      </div>
      {groups.map((group) => (
        <fieldset key={group}>
          <legend>{group}</legend>
          {shown
            .filter((setting) => setting.group === group)
            .map((setting) => (
              <SettingField
                key={setting.name}
                setting={setting}
                text={draft.given[setting.name] ?? ''}
                effective={formatSetting(settingOf(effective, setting.name))}
                isChanged={changed.has(setting)}
                problem={problems.get(setting.name) ?? ''}
                type={(text) => setQuery({ [setting.name]: typed(setting, text, base) })}
                set={(text) => setQuery({ [setting.name]: queryValue(setting, text, base) })}
              />
            ))}
        </fieldset>
      ))}
      {shown.length === 0 ? <p class="hint">No setting is like that.</p> : null}
    </>
  );
}

// While somebody types, the text stays as it is: 2e-3 may become 2e-35.
function typed(
  setting: Setting,
  text: string,
  base: Readonly<Record<string, string>>,
): string | undefined {
  return text === '' && base[setting.name] === undefined ? undefined : text;
}
