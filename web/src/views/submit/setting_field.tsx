// One setting: a field of its type, with its help, its default and what the server says of it.
import type { Setting } from '../../state/settings';

interface Props {
  setting: Setting;
  /** As given; '': it is the default. */
  text: string;
  /** What the server makes of it, '' while that is not known. */
  effective: string;
  /** It is given, and differs from the default. */
  isChanged: boolean;
  problem: string;
  /** While it is typed. */
  type: (text: string) => void;
  /** Once it is chosen. */
  set: (text: string) => void;
}

export function SettingField(props: Props) {
  const { setting, isChanged, problem, set } = props;
  const id = `setting-${setting.name}`;
  return (
    <div class={`field${isChanged ? ' changed' : ''}${problem ? ' wrong' : ''}`}>
      <label for={id}>{setting.name}</label>
      <span class="control">
        <Control {...props} id={id} />
        {setting.unit ? <span class="secondary"> {setting.unit}</span> : null}
        {isChanged ? (
          <button
            type="button"
            class="quiet"
            title={`back to the default, ${setting.default}`}
            aria-label={`default of ${setting.name}`}
            onClick={() => set('')}
          >
            ✕
          </button>
        ) : null}
      </span>
      <p class="help" id={`${id}-help`}>
        {setting.help}
        <span class="default">{defaultText(setting)}</span>
      </p>
      {problem ? (
        <p class="problem" role="alert" id={`${id}-problem`}>
          {problem}
        </p>
      ) : null}
    </div>
  );
}

function Control({ setting, text, effective, problem, type, set, id }: Props & { id: string }) {
  const described = {
    'aria-describedby': problem ? `${id}-problem ${id}-help` : `${id}-help`,
    'aria-invalid': problem !== '',
  };
  if (setting.type === 'switch') {
    return (
      <input
        id={id}
        type="checkbox"
        checked={(text || setting.default) === 'true'}
        onChange={(event) => set(String(event.currentTarget.checked))}
        {...described}
      />
    );
  }
  const choices = setting.choices ?? [];
  if (choices.length > 0 && !setting.choicePrefix) {
    const all = [...new Set([...choices, text || setting.default])];
    return (
      <select
        id={id}
        value={text || setting.default}
        onChange={(event) => set(event.currentTarget.value)}
        {...described}
      >
        {all.map((choice) => (
          <option key={choice} value={choice}>
            {choice === 'auto' && effective ? `auto: ${effective}` : choice}
          </option>
        ))}
      </select>
    );
  }
  const isNumber = setting.type !== 'text';
  return (
    <>
      <input
        id={id}
        type="text"
        class={isNumber ? 'number' : ''}
        inputMode={isNumber ? 'decimal' : 'text'}
        autocomplete="off"
        spellcheck={false}
        value={text}
        placeholder={
          setting.default === 'auto' && effective ? `auto: ${effective}` : setting.default
        }
        {...(choices.length > 0 ? { list: `${id}-choices` } : {})}
        onInput={(event) => type(event.currentTarget.value)}
        onChange={(event) => set(event.currentTarget.value.trim())}
        {...described}
      />
      {choices.length > 0 ? (
        <datalist id={`${id}-choices`}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      ) : null}
    </>
  );
}

// default 12; 1 to 1024
function defaultText(setting: Setting): string {
  const parts = [
    setting.autoHelp ? `auto is ${setting.autoHelp}` : `default ${setting.default || 'empty'}`,
  ];
  if (setting.choicePrefix) parts.push(`or ${setting.choicePrefix}NAME`);
  const range = rangeText(setting);
  if (range !== '') parts.push(range);
  return parts.join('; ');
}

function rangeText({ minimum, maximum, exclusiveMinimum, exclusiveMaximum }: Setting): string {
  if (minimum !== undefined && maximum !== undefined && !exclusiveMinimum && !exclusiveMaximum) {
    return `${minimum} to ${maximum}`;
  }
  const parts: string[] = [];
  if (minimum !== undefined) parts.push(`${exclusiveMinimum ? 'above' : 'at least'} ${minimum}`);
  if (maximum !== undefined) parts.push(`${exclusiveMaximum ? 'below' : 'at most'} ${maximum}`);
  return parts.join(', ');
}
