import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { configJsonSchema, exampleYaml, printConfig } from '../../app/config/describe.ts'
import { checkConfig } from '../../app/config/load.ts'
import type { Config } from '../../app/config/schema.ts'
import { resolveSecret } from '../../app/config/secrets.ts'
import { loadMasterKeys } from '../../storage/access/master-key.ts'
import { CliError } from '../cli-error.ts'
import { configSource, findDataDir, readConfig } from '../configuration.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'

/** Checks the configuration and what its secrets refer to. */
export async function checkConfiguration(shell: Shell, options: GlobalOptions): Promise<void> {
  const problems = checkConfig(configSource(shell, options))
  if (problems.length > 0) throw new CliError(problems.map(({ message }) => message).join('\n'))
  const config = readConfig(shell, options)
  // After the configuration itself: a message about a key that cannot be read would hide the
  // others.
  await checkMasterKey(shell, config)
  const { file } = config.source
  print(shell, file ? `${file} is fine.` : 'There is no configuration file, and the rest is fine.')
}

/** Fails where the master key is not one. A command that prints it is not run: it may need the machine of the service. */
async function checkMasterKey(shell: Shell, config: Config): Promise<void> {
  const { master_key } = config.security
  if (master_key?.startsWith('exec:')) return
  if (master_key !== undefined) {
    await loadMasterKeys({
      value: resolveSecret(master_key, { env: shell.env, key: 'security.master_key' }),
    })
    return
  }
  const file = join(await findDataDir(shell, config), 'master.key')
  if (existsSync(file)) await loadMasterKeys({ file })
}

/** Prints the effective configuration as YAML. */
export async function printConfiguration(shell: Shell, options: GlobalOptions): Promise<void> {
  shell.stdout.write(printConfig(readConfig(shell, options)))
}

/** Prints the JSON Schema of the configuration file. */
export async function printSchema(shell: Shell): Promise<void> {
  printJson(shell, configJsonSchema())
}

/** Prints the example file. */
export async function printExample(shell: Shell): Promise<void> {
  shell.stdout.write(exampleYaml())
}
