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

const [dist, out] = process.argv.slice(2).map((path) => resolve(path));
const blobs = join(out, 'blobs');
rmSync(blobs, { recursive: true, force: true });
mkdirSync(blobs, { recursive: true });
mkdirSync(join(out, 'web/embed'), { recursive: true });

const names = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(dist.length + 1))
  .sort();

const assembly = ['    .section .rodata'];
const symbols = [];
const rows = [];
let total = 0;
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
  const symbol = `normlab_web_asset_${index}`;
  assembly.push(`    .global ${symbol}`, `${symbol}:`, `    .incbin "${blob}"`, '    .byte 0');
  symbols.push(`extern "C" const char ${symbol}[];`);
  const immutable = /^assets\/.*-[\w-]{8}\.\w+$/.test(name);
  rows.push(
    `    {"/${name}", "${type}", "\\"${etag}\\"", {${symbol}, ${bytes.length}}, ${gzip}, ${immutable}},`,
  );
}
if (total > firstLoadLimit) {
  throw new Error(`the page is ${total} bytes compressed; its limit is ${firstLoadLimit}`);
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
console.log(`${names.length} files, ${total} bytes compressed`);
