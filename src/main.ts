import { enableCompileCache, getCompileCacheDir } from 'node:module'
import { ownCompileCache } from '../bin/compile-cache.js'

// From the second start on this saves about 300 ms of stripping types and compiling. Without a folder Node
// would take a shared one, where any user could put code.
const cache = getCompileCacheDir() === undefined ? ownCompileCache() : undefined
if (cache !== undefined) enableCompileCache(cache)
const { runCli } = await import('./cli/cli.ts')
await runCli(process.argv)
