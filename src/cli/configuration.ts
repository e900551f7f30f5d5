import { loadConfig } from '../app/config/load.ts'
import type { Config, Overrides } from '../app/config/schema.ts'
import { defaultDataDir } from '../storage/embedded/data-dir.ts'
import type { GlobalOptions, Shell } from './shell.ts'

/** Where a command looks for its configuration. */
export const configSource = (shell: Shell, options: GlobalOptions, overrides: Overrides = {}) => ({
  env: shell.env,
  cwd: shell.cwd,
  ...(options.config !== undefined && { file: options.config }),
  // Options of the command line win over the file and the environment.
  overrides: {
    ...overrides,
    ...(options.dataDir !== undefined && { data_dir: options.dataDir }),
  },
})

/** The configuration that a command works with. */
export const readConfig = (shell: Shell, options: GlobalOptions, overrides?: Overrides): Config =>
  loadConfig(configSource(shell, options, overrides))

/** The data directory of a configuration, whether it is there or not. */
export const findDataDir = async (shell: Shell, config: Config): Promise<string> =>
  config.data_dir ?? (await defaultDataDir({ cwd: shell.cwd, env: shell.env }))
