import { effect } from '@preact/signals';
import { render } from 'preact';
import './styles/base.css';
import './styles/frame.css';
import { Live } from './state/live';
import { startRouter } from './state/router';
import { logOut, startSession, token } from './state/session';
import { startTheme } from './state/theme';
import { App, live } from './views/app';

startTheme();
await startSession();
// After the session, which takes a login code out of the address.
startRouter();

effect(() => {
  const value = token.value;
  live.peek()?.close();
  live.value = value
    ? new Live(value, () => logOut('This browser is not logged in any more.'))
    : undefined;
});

const page = document.getElementById('page');
if (page) render(<App />, page);
