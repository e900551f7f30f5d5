import { startApp } from '../../src/app/app.ts'
import { loadConfig } from '../../src/app/config/load.ts'
import { silentLog } from '../../src/lib/log.ts'

/** The service as a process that can be killed; its configuration is the first argument. */
const overrides = JSON.parse(process.argv[2]!)
const cwd: string = overrides.data_dir
await startApp({
  config: loadConfig({ env: {}, cwd, overrides }),
  env: {},
  cwd,
  log: silentLog as never,
  version: '0.0.0-test',
})
process.stdout.write('ready\n')
