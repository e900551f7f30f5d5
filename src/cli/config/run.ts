import { configJsonSchema, exampleYaml, printConfig } from '../../app/config/describe.ts'
import { checkConfig } from '../../app/config/load.ts'
import { CliError } from '../cli-error.ts'
import { configSource, readConfig } from '../configuration.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'

/** Checks the configuration and what its secrets refer to. */
export async function checkConfiguration(shell: Shell, options: GlobalOptions): Promise<void> {
  const problems = checkConfig(configSource(shell, options))
  if (problems.length > 0) throw new CliError(problems.map(({ message }) => message).join('\n'))
  const { file } = readConfig(shell, options).source
  print(shell, file ? `${file} is fine.` : 'There is no configuration file, and the rest is fine.')
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
