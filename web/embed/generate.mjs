// Turns the built page into sources that a compiler takes: node generate.mjs DIST OUT writes
//   OUT/assets.S                   the bytes, by .incbin: a compiler is slow at large arrays
//   OUT/web/embed/assets_table.h   what FindAsset searches
//   OUT/blobs/*                    the bytes, compressed where that makes them smaller
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';

const contentTypes = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};

// Compressed bytes of a first visit; more than this on a lab's network is felt.
const firstLoadLimit = 150 * 1000;
// The view that a first visit shows; what only other views need is loaded when they are opened.
const firstView = 'src/views/runs/runs_view.tsx';
const manifestName = 'manifest.json';

const [dist, out] = process.argv.slice(2).map((path) => resolve(path));
const blobs = join(out, 'blobs');
rmSync(blobs, { recursive: true, force: true });
mkdirSync(blobs, { recursive: true });
mkdirSync(join(out, 'web/embed'), { recursive: true });

const names = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(dist.length + 1))
  .filter((name) => name !== manifestName)
  .sort();
const loadedLater = filesLoadedLater(JSON.parse(readFileSync(join(dist, manifestName), 'utf8')));

const assembly = ['    .section .rodata'];
const symbols = [];
const rows = [];
let total = 0;
let firstLoad = 0;
for (const [index, name] of names.entries()) {
  const type = contentTypes[extname(name)];
  if (!type) throw new Error(`${name}: no content type is known for this kind of file`);
  const plain = readFileSync(join(dist, name));
  const packed = gzipSync(plain, { level: 9 });
  const gzip = packed.length < plain.length;
  const bytes = gzip ? packed : plain;
  const etag = createHash('sha256').update(plain).digest('hex').slice(0, 32);
  const blob = join(blobs, String(index));
  writeFileSync(blob, bytes);
  total += bytes.length;
  if (!loadedLater.has(name)) firstLoad += bytes.length;
  const symbol = `normlab_web_asset_${index}`;
  assembly.push(`    .global ${symbol}`, `${symbol}:`, `    .incbin "${blob}"`, '    .byte 0');
  symbols.push(`extern "C" const char ${symbol}[];`);
  const immutable = /^assets\/.*-[\w-]{8}\.\w+$/.test(name);
  rows.push(
    `    {"/${name}", "${type}", "\\"${etag}\\"", {${symbol}, ${bytes.length}}, ${gzip}, ${immutable}},`,
  );
}
if (firstLoad > firstLoadLimit) {
  throw new Error(`a first visit is ${firstLoad} bytes compressed; the limit is ${firstLoadLimit}`);
}
assembly.push('    .section .note.GNU-stack,"",%progbits', '');

writeFileSync(join(out, 'assets.S'), assembly.join('\n'));
writeFileSync(
  join(out, 'web/embed/assets_table.h'),
  `// Made by web/embed/generate.mjs.
#include "web/embed/assets.h"

${symbols.join('\n')}

namespace normlab::web {
inline constexpr Asset kAssets[] = {
${rows.join('\n')}
};
}  // namespace normlab::web
`,
);
console.log(
  `${names.length} files, ${total} bytes compressed; ${firstLoad} of them on a first visit`,
);

// Files that the manifest names and that neither the page itself nor its first view imports. What
// it does not name, such as workers, counts as loaded at once.
function filesLoadedLater(manifest) {
  const filesOf = ({ file, css = [], assets = [] }) => [file, ...css, ...assets];
  if (!manifest[firstView]) throw new Error(`the manifest has no ${firstView}`);
  const atOnce = new Set();
  const seen = new Set();
  const follow = (key) => {
    if (seen.has(key)) return;
    seen.add(key);
    for (const file of filesOf(manifest[key])) atOnce.add(file);
    for (const next of manifest[key].imports ?? []) follow(next);
  };
  for (const [key, chunk] of Object.entries(manifest)) if (chunk.isEntry) follow(key);
  follow(firstView);
  const all = Object.values(manifest).flatMap(filesOf);
  return new Set(all.filter((file) => !atOnce.has(file)));
}
