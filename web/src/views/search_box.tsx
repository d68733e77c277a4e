// The search box of the top bar: words to find runs by, or a filter. '/' leads here from anywhere.
import { useEffect, useRef } from 'preact/hooks';
import { address, goTo, setQuery } from '../state/router';

export function SearchBox() {
  const input = useRef<HTMLInputElement>(null);
  const { view, query } = address.value;
  const filter = view === 'runs' ? (query.filter ?? '') : '';

  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
      if (isTextField(event.target)) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener('keydown', focus);
    return () => removeEventListener('keydown', focus);
  }, []);

  const search = (event: Event) => {
    event.preventDefault();
    const text = input.current?.value.trim() ?? '';
    if (view !== 'runs') goTo('runs', '', text === '' ? {} : { filter: text });
    else setQuery({ filter: text === '' ? undefined : text });
  };
  const leave = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return;
    if (input.current) input.current.value = filter;
    input.current?.blur();
  };
  return (
    <search class="search">
      <form onSubmit={search}>
        <input
          ref={input}
          type="search"
          value={filter}
          placeholder="search: state=running loss&lt;0.1"
          aria-label="Search runs"
          title="Words of a name, note or label, or conditions such as user=lab1 layers>=12; press / to come here"
          autocomplete="off"
          spellcheck={false}
          onKeyDown={leave}
          onSearch={(event) => (event.currentTarget.value === '' ? search(event) : undefined)}
        />
      </form>
    </search>
  );
}

function isTextField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.matches('textarea, select, input:not([type="checkbox"])'))
  );
}
