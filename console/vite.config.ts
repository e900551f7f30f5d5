import { defineConfig } from 'vite'
import { guidePlugin } from './build/guide-plugin.ts'

/** Built to `dist`, which the service serves at its base path: every address in it is relative. */
export default defineConfig({
  root: import.meta.dirname,
  base: './',
  plugins: [guidePlugin()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true,
    // The policy of the page allows no data: addresses beside images, and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        // A document may have the name of a page.
        chunkFileNames: ({ facadeModuleId }) =>
          facadeModuleId?.includes('virtual:guide')
            ? 'assets/guide-[name]-[hash].js'
            : 'assets/[name]-[hash].js',
      },
    },
  },
})
