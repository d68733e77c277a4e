import { effect } from '@preact/signals';
import { render } from 'preact';
import './style.css';
import { Live } from './state/live';
import { startSelection } from './state/selection';
import { logOut, startSession, token } from './state/session';
import { startTheme } from './state/theme';
import { App, live } from './views/app';

startTheme();
await startSession();
// After the session, which takes a login code out of the address.
startSelection();

effect(() => {
  const value = token.value;
  live.peek()?.close();
  live.value = value
    ? new Live(value, () => logOut('This browser is not logged in any more.'))
    : undefined;
});

const page = document.getElementById('page');
if (page) render(<App />, page);
