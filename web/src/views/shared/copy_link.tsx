// A button that copies the address of the view, which says all that it shows.
import { say, sayProblem } from './said';

export function CopyLink() {
  const copy = () => {
    // Browsers let only pages of a safe address copy by themselves.
    const copying = navigator.clipboard?.writeText(location.href) ?? Promise.reject(new Error());
    copying.then(
      () => say('the address of this view is copied'),
      () =>
        sayProblem('copy link', 'the browser does not let this page copy; take the address bar'),
    );
  };
  return (
    <button type="button" onClick={copy}>
      copy link
    </button>
  );
}
