/** Configuration with which `scripts/build-console.mjs` bundles the console. */
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  // Control may serve the console below any path, so URLs are relative to the document's <base>.
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
    // test/console/pages.extended.test.ts limits the first load.
    chunkSizeWarningLimit: 1000,
    reportCompressedSize: false,
    rolldownOptions: {
      // The first page needs one file, because each file costs a request.
      output: { codeSplitting: { groups: [{ name: 'first', tags: ['$initial'] }] } },
      // Ignores a warning of React's libraries about server-side rendering, which is not used.
      onwarn: (warning, report) => {
        if (warning.code !== 'MODULE_LEVEL_DIRECTIVE') report(warning);
      },
    },
  },
});
