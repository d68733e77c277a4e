// A field of the form that is no setting: its label, help, and what the server says of it.
import type { ComponentChildren } from 'preact';

interface Props {
  id: string;
  label: string;
  help: string;
  /** What is wrong with it, a line each. */
  problems: readonly string[];
  children: ComponentChildren;
}

export function Field({ id, label, help, problems, children }: Props) {
  return (
    <div class={`field${problems.length > 0 ? ' wrong' : ''}`}>
      <label for={id}>{label}</label>
      {children}
      <p class="help" id={`${id}-help`}>
        {help}
      </p>
      {problems.map((problem) => (
        <p key={problem} class="problem" role="alert">
          {problem}
        </p>
      ))}
    </div>
  );
}
