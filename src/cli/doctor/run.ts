// `portolan doctor`: what a start would find, without starting. Checks are generators, so that each finding is printed when
// it is known: a database that does not answer takes ten seconds.

import { checkSecrets } from '../../app/config/load.ts'
import { ConfigError } from '../../app/config/problem.ts'
import type { Config } from '../../app/config/schema.ts'
import { CliError } from '../cli-error.ts'
import { findDataDir, readConfig } from '../configuration.ts'
import { explain } from '../explain.ts'
import { type GlobalOptions, print, printJson, type Shell } from '../shell.ts'
import { columnsOf } from '../table.ts'
import { checkDatabase, checkRedis } from './database.ts'
import type { DoctorContext } from './finding.ts'
import { type Finding, failure, findingText, ok, warning } from './finding.ts'
import { checkDataDir, checkDisk, checkNode, checkPort } from './machine.ts'
import { checkTracking } from './tracking.ts'
import { checkUpstreams } from './upstreams.ts'

/** Runs all checks; fails when one of them does. */
export async function runDoctor(
  shell: Shell,
  options: GlobalOptions & { json?: boolean },
): Promise<void> {
  const findings: Finding[] = []
  for await (const finding of examine(shell, options)) {
    findings.push(finding)
    if (!options.json) print(shell, findingText(finding, columnsOf(shell.stdout)))
  }
  if (options.json) printJson(shell, findings)
  const failures = findings.filter(({ status }) => status === 'failure').length
  if (failures > 0)
    throw new CliError(
      `${failures} ${failures === 1 ? 'problem prevents' : 'problems prevent'} the service from working.`,
    )
}

async function* examine(shell: Shell, options: GlobalOptions): AsyncGenerator<Finding> {
  yield checkNode()
  const config = yield* checkConfiguration(shell, options)
  if (!config) return
  const context = { shell, config, dataDir: await findDataDir(shell, config) }
  // One after the other, in the order in which a start would fail.
  for (const [name, check] of Object.entries(checks)) {
    try {
      yield* check(context)
    } catch (error) {
      const detail = explain(error) ?? (error instanceof Error ? error.message : String(error))
      yield failure(name, detail, fixes[name] ?? 'Fix this first.')
    }
  }
}

// In the order of the start. None depends on the one before, because a person wants all problems in one run.
const checks: Record<string, (context: DoctorContext) => AsyncIterable<Finding>> = {
  'data directory': checkDataDir,
  disk: checkDisk,
  port: checkPort,
  database: checkDatabase,
  redis: checkRedis,
  nodes: checkUpstreams,
  tracking: checkTracking,
}

const fixes: Record<string, string> = {
  database: 'See "portolan config print" for the database that is configured.',
}

async function* checkConfiguration(
  shell: Shell,
  options: GlobalOptions,
): AsyncGenerator<Finding, Config | undefined> {
  const fix = 'See "portolan config example" for every key.'
  try {
    const config = readConfig(shell, options)
    const warnings: string[] = []
    const warn = (message: string) => warnings.push(message)
    const problems = checkSecrets(config, { env: shell.env, warn })
    for (const { message } of problems) yield failure('configuration', message, fix)
    for (const message of warnings) yield warning('configuration', message, 'Narrow the access.')
    if (problems.length > 0) return undefined
    const { file } = config.source
    if (config.security.development_rules)
      yield warning(
        'development',
        'security.development_rules is on: a demo administrator, and webhooks to http:// and loopback',
        'Remove it before anyone else reaches the service.',
      )
    if (warnings.length === 0)
      yield ok('configuration', file ?? 'no file: everything that is not set is embedded')
    return config
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    for (const { message } of error.problems) yield failure('configuration', message, fix)
    return undefined
  }
}
