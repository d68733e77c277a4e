// What nearly every file of browser tests begins and ends with: servers that serve, a browser that is
// open, and pages that are logged in.
//
//   const opened = openFor(server);
//   test('…', async () => {
//     const page = await opened.page('#/queue');
//   });
import { after, before } from 'node:test';
import { openBrowser, seeCharts, timeCharts } from './browser.mjs';

/** Before the tests of a file starts the servers and a browser, and after them ends all of it. */
export function openFor(servers, options = {}) {
  const all = [servers].flat();
  let started;
  const start = () => {
    started ??= (async () => {
      await Promise.all(all.map((server) => server.start()));
      opened.browser = await openBrowser(options);
    })();
    return started;
  };
  const opened = {
    /** As openBrowser gives it; there once the tests begin. */
    browser: undefined,
    /** A page that is logged in at a server, live, and shows `hash`; its charts can be looked into. */
    async page(hash, server = all[0]) {
      await start(); // another hook may come before the one below is done
      const page = await opened.browser.newPage();
      await seeCharts(page);
      await timeCharts(page);
      await page.goto(server.loginAddress());
      await page.locator('.connection.live').waitFor();
      await show(page, hash);
      return page;
    },
  };
  before(start);
  after(async () => {
    await opened.browser?.close();
    await Promise.all(all.map((server) => server.end()));
  });
  return opened;
}

/** Shows another view, as a link in the page does: it is not loaded anew. */
export function show(page, hash) {
  return page.evaluate((to) => {
    location.hash = to;
  }, hash);
}
