import { useRef } from 'preact/hooks';
import { logIn, loginProblem } from '../state/session';

export function LoginView() {
  const input = useRef<HTMLInputElement>(null);
  const submit = (event: Event) => {
    event.preventDefault();
    const value = input.current?.value.trim();
    if (value) logIn(value);
  };
  return (
    <main class="login">
      <h1>Log in</h1>
      {loginProblem.value ? <p role="alert">{loginProblem.value}</p> : null}
      <p>
        On the machine that runs the server, as the user who started it, run{' '}
        <code>normlab open</code>. It opens this page and logs it in. On another machine,{' '}
        <code>normlab open --print</code> prints an address to open here; it works once, within 60
        seconds.
      </p>
      <form onSubmit={submit}>
        <label for="token">Or paste a token</label>
        <input id="token" ref={input} type="password" autocomplete="off" spellcheck={false} />
        <button type="submit">Log in</button>
      </form>
    </main>
  );
}
