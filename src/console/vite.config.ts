/** How `scripts/build-console.mjs` bundles the console. */
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  // Control may serve the console below any path: everything is relative to the document's <base>.
  base: './',
  build: {
    outDir: '../../dist/console',
    emptyOutDir: true,
    target: 'es2023',
    // No inlined files: the Content-Security-Policy allows data: for images only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Licences of the bundled packages.
    license: { fileName: 'LICENSES.md' },
    // test/console/first-load.extended.test.ts limits the first load.
    chunkSizeWarningLimit: 1000,
    reportCompressedSize: false,
    rolldownOptions: {
      // What the first page needs is one file: each costs a request.
      output: { codeSplitting: { groups: [{ name: 'first', tags: ['$initial'] }] } },
      // Of React's libraries, for servers that render: there is none.
      onwarn: (warning, report) => {
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') report(warning);
      },
    },
  },
});
