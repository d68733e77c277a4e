// Light or dark: the system's choice until somebody makes their own.
import { computed, effect, signal } from '@preact/signals';

export type ThemeChoice = 'auto' | 'light' | 'dark';

const storageKey = 'normlab.theme';
const systemIsDark = signal(false);

export const themeChoice = signal<ThemeChoice>('auto');
export const theme = computed(() => {
  if (themeChoice.value !== 'auto') return themeChoice.value;
  return systemIsDark.value ? 'dark' : 'light';
});

export function startTheme(): void {
  const stored = localStorage.getItem(storageKey);
  if (stored === 'light' || stored === 'dark') themeChoice.value = stored;
  const query = matchMedia('(prefers-color-scheme: dark)');
  systemIsDark.value = query.matches;
  query.addEventListener('change', () => {
    systemIsDark.value = query.matches;
  });
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
}

export function nextTheme(): void {
  const order: ThemeChoice[] = ['auto', 'light', 'dark'];
  const next = order[(order.indexOf(themeChoice.value) + 1) % order.length] ?? 'auto';
  themeChoice.value = next;
  localStorage.setItem(storageKey, next);
}
