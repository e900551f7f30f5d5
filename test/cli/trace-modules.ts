import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

// Preloaded into a command: writes the addresses of all modules that it loaded.
const loaded: string[] = []
registerHooks({
  load: (url, context, next) => {
    loaded.push(url)
    return next(url, context)
  },
})
process.on('exit', () => writeFileSync(process.env.TRACE_FILE as string, loaded.join('\n')))
