// Pages of other origins on the same host, in a browser that is logged in at the real server:
//   NORMLABD=… NORMLAB=… node origins.e2e.mjs
// They get no token and change nothing; and the page itself obeys a strict policy.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import test, { after, before } from 'node:test';
import { openBrowser, until } from './browser.mjs';
import { RealServer } from './real_server.mjs';

const server = new RealServer({ script: 'steps_per_second=20' });
let browser;
let page;
let run;
before(async () => {
  await server.start();
  run = await server.submit('to be left alone', { steps: 100_000 });
  browser = await openBrowser();
  page = await browser.newPage();
  await page.goto(server.loginAddress());
  await page.locator('tr.run').waitFor();
});
after(async () => {
  await browser?.close();
  await server.end();
});

/** A page of another port of this machine, as another account might serve one. */
async function foreignPage(t, path = '/') {
  const other = createServer((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' });
    response.end('<!doctype html><title>foreign</title>');
  });
  await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const opened = await browser.newPage();
  t.after(() => opened.close());
  await opened.goto(`http://127.0.0.1:${other.address().port}${path}`);
  return opened;
}

test('another origin sees no token and is refused whatever it asks', async (t) => {
  const foreign = await foreignPage(t);
  const seen = await foreign.evaluate(
    async ({ http, id }) => {
      const ask = async (path, options) => {
        try {
          const answer = await fetch(`http://${http}${path}`, options);
          return `${answer.status} ${await answer.text()}`;
        } catch (error) {
          return String(error);
        }
      };
      const bearer = { Authorization: 'Bearer guess' };
      const plain = { method: 'POST', body: '{}', headers: { 'Content-Type': 'text/plain' } };
      const none = { ...plain, mode: 'no-cors', credentials: 'include' };
      return {
        storage: JSON.stringify(localStorage),
        cookies: document.cookie,
        page: await ask('/'),
        runs: await ask('/api/v1/runs', { credentials: 'include' }),
        bearer: await ask('/api/v1/runs', { headers: bearer }),
        cancel: await ask(`/api/v1/runs/${id}:cancel`, plain),
        blind: await ask(`/api/v1/runs/${id}:cancel`, none),
        login: await ask('/api/v1/login', { ...plain, body: '{"code":"x"}' }),
      };
    },
    { http: server.http, id: run.id },
  );
  assert.equal(seen.storage, '{}');
  assert.equal(seen.cookies, '');
  for (const what of ['page', 'runs', 'bearer', 'cancel', 'login']) {
    assert.match(seen[what], /TypeError: Failed to fetch/, what);
  }
  assert.ok(!seen.blind.includes('token'), seen.blind);
  const { state } = await server.api('GET', `/runs/${run.id}`);
  assert.equal(state, 'STATE_RUNNING', 'nothing was changed');

  // With the right token as well: a token that leaked is of no use to pages elsewhere.
  const leaked = await foreign.evaluate(
    async ({ http, token }) =>
      fetch(`http://${http}/api/v1/runs`, { headers: { Authorization: `Bearer ${token}` } }).then(
        (answer) => `${answer.status}`,
        (error) => String(error),
      ),
    { http: server.http, token: server.endpoint.token },
  );
  assert.match(leaked, /TypeError: Failed to fetch/);
});

test('another origin cannot put the page into a frame, nor reach into its window', async (t) => {
  const foreign = await foreignPage(t);
  const refused = [];
  foreign.on('requestfailed', (request) => refused.push(request.url()));
  await foreign.evaluate((http) => {
    const frame = document.createElement('iframe');
    frame.src = `http://${http}/`;
    document.body.append(frame);
  }, server.http);
  await until('the frame to be refused', async () => {
    const frame = foreign.frames().find((one) => one !== foreign.mainFrame());
    return frame?.url().startsWith('chrome-error:') || refused.length > 0;
  });
  // Its own window, opened from there, is as closed.
  const opening = foreign.context().waitForEvent('page');
  await foreign.evaluate((http) => {
    window.opened = window.open(`http://${http}/`);
  }, server.http);
  const window_ = await opening;
  await window_.locator('tr.run').waitFor();
  const reached = await foreign.evaluate(() => {
    try {
      return `document: ${window.opened.document.title}`;
    } catch (error) {
      return error.name;
    }
  });
  assert.ok(['SecurityError', 'TypeError'].includes(reached), reached);
  await window_.close();
});

test('the page runs under a strict policy, which an injected script cannot pass', async () => {
  const answer = await fetch(`http://${server.http}/`);
  const policy = answer.headers.get('content-security-policy');
  for (const rule of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"]) {
    assert.ok(policy.includes(rule), policy);
  }
  assert.ok(!policy.includes('unsafe'), policy);
  assert.ok(!/<script(?![^>]*\bsrc=)/.test(await answer.text()), 'no inline script');
  const ran = await page.evaluate(
    () =>
      new Promise((resolve) => {
        addEventListener('securitypolicyviolation', () => resolve(window.injected === true), {
          once: true,
        });
        const script = document.createElement('script');
        script.textContent = 'window.injected = true';
        document.body.append(script);
      }),
  );
  assert.equal(ran, false);
});
