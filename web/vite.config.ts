import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

// The server the development page talks to: `NORMLAB_DEV_SERVER=http://127.0.0.1:8710 npm run dev`.
const devServer = process.env.NORMLAB_DEV_SERVER ?? 'http://127.0.0.1:8710';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  // oxc reads tsconfig.json's jsxImportSource; nothing else is needed for Preact.
  build: {
    target: 'es2022',
    // The strict Content-Security-Policy has no data: for scripts and fonts; keep every asset a file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    emptyOutDir: true,
    // Tells embed/generate.mjs what a first visit loads.
    manifest: 'manifest.json',
    reportCompressedSize: false,
  },
  worker: { format: 'es' },
  server: { proxy: { '/api': { target: devServer, changeOrigin: true } } },
  test: { include: ['src/**/*.test.ts'], environment: 'node', maxWorkers: 1 },
});
