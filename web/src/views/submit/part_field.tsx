// Which runs of a preset: by the values of the settings in which they differ.
import type { PresetJson } from '../../gen/normlab/v1/experiment_service_pb';
import { type Choice, parsePart, togglePart } from '../../state/preset_part';

interface Props {
  id: string;
  preset: PresetJson | undefined;
  possible: readonly Choice[];
  /** As the address has it. */
  text: string;
  set: (text: string) => void;
}

export function PartField({ id, preset, possible, text, set }: Props) {
  const chosen = parsePart(text);
  return (
    <fieldset class="part" id={id} aria-label={`runs of ${preset?.name}`}>
      {possible.map(({ setting, values }) => {
        const wanted = chosen.find((one) => one.setting === setting)?.values ?? values;
        return (
          <span key={setting} class="part-setting">
            <span class="secondary">{setting}</span>
            {values.map((value) => {
              const isOn = wanted.includes(value);
              return (
                <label key={value}>
                  <input
                    type="checkbox"
                    checked={isOn}
                    disabled={isOn && wanted.length === 1} // something must be left
                    aria-label={`${setting} ${value}`}
                    onChange={() => set(togglePart(text, possible, setting, value))}
                  />{' '}
                  {value}
                </label>
              );
            })}
          </span>
        );
      })}
    </fieldset>
  );
}
