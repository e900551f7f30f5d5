import { enableCompileCache } from 'node:module'

// From the second start on this saves about 300 ms of stripping types and compiling.
enableCompileCache()
const { runCli } = await import('./cli/cli.ts')
await runCli(process.argv)
