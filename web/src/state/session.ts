// Who the page is: a token in storage that only this origin reads. No cookies: those would also be
// sent to every other port of the same host.
import { signal } from '@preact/signals';
import { exchangeLoginCode } from '../api/client';

const storageKey = 'normlab.token';

export const token = signal<string | undefined>(undefined);
/** Why nobody is logged in, in words; empty when nobody tried. */
export const loginProblem = signal('');

/** Takes the code out of `#code=…`, at once and whatever comes of it: it must not be bookmarked. */
function takeCode(): string | undefined {
  const found = /^#code=([^&]+)/.exec(location.hash);
  if (!found?.[1]) return undefined;
  history.replaceState(null, '', `${location.pathname}#/runs`);
  return decodeURIComponent(found[1]);
}

export async function startSession(): Promise<void> {
  const code = takeCode();
  const stored = localStorage.getItem(storageKey) ?? undefined;
  if (code === undefined) {
    token.value = stored;
    return;
  }
  try {
    const answer = await exchangeLoginCode(code);
    if (!answer.token) throw new Error('the server gave no token');
    logIn(answer.token);
  } catch (error) {
    // An address that was opened twice is no reason to forget who was logged in before.
    if (stored) token.value = stored;
    else loginProblem.value = error instanceof Error ? error.message : String(error);
  }
}

export function logIn(value: string): void {
  localStorage.setItem(storageKey, value);
  loginProblem.value = '';
  token.value = value;
}

export function logOut(problem: string): void {
  localStorage.removeItem(storageKey);
  loginProblem.value = problem;
  token.value = undefined;
}
