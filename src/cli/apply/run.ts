// Runs `portolan apply`: reads the document, plans all of it, and only then changes anything. Every change is an operation
// of the catalogue with the caller `operator`, so that the rules, limits and audit log of the API hold here too.

import { open, readFile } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { styleText } from 'node:util'
import { openCommandChains } from '../../app/chain-commands.ts'
import { hasDevelopmentRules, wantsLocalChains } from '../../app/config/development.ts'
import { readDocument } from '../../app/config/document.ts'
import { ConfigError, type Path, type Problem, pathText } from '../../app/config/problem.ts'
import { resolveChains } from '../../app/config/resolve.ts'
import type { Config } from '../../app/config/schema.ts'
import { resolveSecret } from '../../app/config/secrets.ts'
import { variantServices, variantsOf } from '../../app/config/sections/chains.ts'
import { toQuotas } from '../../app/config/sections/limits.ts'
import { endpointRules } from '../../app/webhooks.ts'
import { services, type WalletService } from '../../contract/variant.ts'
import type { Context } from '../../domain/context.ts'
import { silentLog } from '../../lib/log.ts'
import { openChainTools } from '../chain-tools.ts'
import { CliError, usageError } from '../cli-error.ts'
import { type Local, operatorOf, performOperation, withLocal } from '../local.ts'
import { type GlobalOptions, note, print, printJson, type Shell } from '../shell.ts'
import { documentSchema, type OrganizationsDocument } from './document.ts'
import { checkPlan, makePlan } from './plan.ts'
import type { Plan, PlanTools, ReadChain, ShownSecret } from './plan-tools.ts'
import type { Call, Step } from './step.ts'

type Options = GlobalOptions & {
  file: string
  plan?: boolean
  prune?: boolean
  secrets?: string
  json?: boolean
}

/** Brings the installation to what a document says, or shows what that would change. */
export async function runApply(shell: Shell, options: Options): Promise<void> {
  const { value: document, problem } = await readFileOf(shell, options.file)
  // The chains are opened because addresses and contracts are checked by the rules of their family.
  // With --plan nothing is created, so there are no secrets to write.
  const secretsFile =
    options.secrets && !options.plan ? resolve(shell.cwd, options.secrets) : undefined
  await withLocal(shell, options, async (local) => {
    const config = await configOf(shell, document, local, options)
    // Only warnings of the chains are shown; progress would mix with the plan.
    const log = { ...silentLog, warn: (_: object, message: string) => note(shell, message) }
    const { db } = local.context
    const opened = openCommandChains(config, { db, env: shell.env, log })
    try {
      const contextAt = createContexts(local, config, opened.chains)
      // Collected over the whole document, so that one run reports every problem.
      const problems: Problem[] = []
      const shown = createSecretOutput(shell, secretsFile)
      const tools: PlanTools = {
        local,
        defaults: config.limits,
        isLimited: (chain) =>
          chain === '*' || Object.hasOwn(services, chain) || Object.hasOwn(config.chains, chain),
        serviceAt: (at) => serviceAt(config, at),
        read: (at, organization_id) =>
          ((name, request) =>
            performOperation(contextAt({ at, organization_id }, name), request)) as ReadChain,
        // Resolved while planning: a missing variable is found before anything is changed.
        secret: (value, path) => readSecret(value, path, shell, problems, problem),
        onSecret: shown.put,
        refuse: (path, rest) => problems.push(problem(path, rest)),
        prune: options.prune === true,
      }
      const plan = await makePlan(document, tools)
      if (problems.length === 0) checkPlan(plan, tools)
      if (problems.length > 0) throw problemsOf(options.file, problems)
      if (options.plan) showPlan(shell, plan, options)
      else await performPlan(shell, plan, { contextAt, shown })
      // The chains hold connections to nodes, which would keep the process alive.
    } finally {
      await opened.stop()
    }
  })
}

async function readFileOf(shell: Shell, file: string) {
  const path = resolve(shell.cwd, file)
  const short = relative(shell.cwd, path)
  const name = file === '-' ? 'the standard input' : short.startsWith('..') ? path : short
  const text =
    file === '-'
      ? await textOf(shell.stdin)
      : await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
          throw usageError(`The file ${path} cannot be read (${error.code}).`)
        })
  try {
    return readDocument<OrganizationsDocument>(documentSchema, { name, text })
  } catch (error) {
    if (error instanceof ConfigError) throw problemsOf(name, error.problems)
    throw error
  }
}

/** Everything that is wrong with the document, at once. */
const problemsOf = (name: string, problems: readonly Problem[]): CliError => {
  const [first] = problems
  if (first && problems.length === 1) return new CliError(first.message)
  const lines = problems.map(({ message }) => `- ${message}`)
  return new CliError([`${name} has ${problems.length} problems:`, ...lines].join('\n'))
}

/** The configuration; with the local chains of the embedded mode where the document names one of them. */
async function configOf(
  shell: Shell,
  { organizations }: OrganizationsDocument,
  { config, context }: Local,
  options: GlobalOptions,
): Promise<Config> {
  let merged = config
  const chains = new Set(organizations.flatMap((one) => Object.keys(one.chains ?? {})))
  for (const at of chains) {
    // Only the chain matters: all networks of a chain have its variant.
    const [chain = ''] = at.split('/')
    const tools = { db: context.db, config: merged, at: { chain } }
    const { chains: found } = (await openChainTools(shell, tools, options)).config
    merged = { ...merged, chains: { ...found, ...merged.chains } }
  }
  return resolveChains(merged, shell.env)
}

// Wallets exist for every variant but Q, so at most one variant of a chain is meant.
const serviceAt = ({ chains }: Config, at: string): WalletService | undefined => {
  const [name = '', network] = at.split('/')
  const settings = Object.hasOwn(chains, name) ? chains[name] : undefined
  if (!settings || (network !== undefined && !Object.hasOwn(settings.networks, network)))
    return undefined
  return variantsOf(name, settings)
    .map((variant) => variantServices[variant])
    .find((service) => service !== 'q')
}

type Contexts = (
  where: { at: string; organization_id: string } | 'admin',
  operation: string,
) => Context

function createContexts(
  { context, config: own }: Local,
  config: Config,
  chains: Context['chains'],
): Contexts {
  const endpoints = endpointRules(() => config, hasDevelopmentRules(own, wantsLocalChains(own)))
  const installation = {
    ...context,
    quotas: toQuotas(config.quotas),
    limits: { defaults: config.limits, chains: ['admin', ...Object.keys(config.chains)] },
    endpoints,
    ...(chains && { chains }),
  }
  return (where, operation) => {
    if (where === 'admin') return { ...installation, operation }
    const [chain = '', network] = where.at.split('/')
    return {
      ...installation,
      ...{ operation, chain, network, principal: operatorOf(where.organization_id) },
      service: serviceAt(config, where.at) ?? 'c',
    }
  }
}

function readSecret(
  value: string,
  path: Path,
  { env }: Shell,
  problems: Problem[],
  problem: (path: Path, rest: string) => Problem,
): string {
  try {
    return resolveSecret(value, { env, key: pathText(path) })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    problems.push(problem(path, `cannot be read: ${error.message}`))
    // A stand-in: the rest of the document is still checked, and the problem prevents the run.
    return 'unknown'
  }
}

type SecretOutput = { put(secret: ShownSecret): Promise<void>; count(): number }

/** Secrets are written as soon as they exist: a step that fails later must not lose them. */
function createSecretOutput(shell: Shell, file: string | undefined): SecretOutput {
  let count = 0
  return {
    put: async (secret) => {
      count++
      const line = `${JSON.stringify(secret)}\n`
      if (file === undefined) shell.stdout.write(line)
      else {
        await using handle = await open(file, 'a', 0o600)
        // An existing file may be readable by others; the first secret must not be.
        const { mode } = await handle.stat()
        if (mode & 0o077) await handle.chmod(0o600)
        await handle.write(line)
        // The secret exists nowhere else in readable form: it must be on the disk before the next step runs.
        await handle.sync()
      }
    },
    count: () => count,
  }
}

function showPlan(shell: Shell, plan: Plan, { json }: Options): void {
  if (!json) {
    print(shell, describePlan(plan, shell))
    return
  }
  const steps = plan.organizations.flatMap(({ domain, steps: all }) =>
    all.map(({ mark, subject, details, path }) => ({
      ...{ organization: domain, action: actions[mark], subject, details },
      path: pathText(path),
    })),
  )
  printJson(shell, { steps, extras: plan.extras })
}

const actions = { '+': 'create', '~': 'change', '-': 'remove' } as const

async function performPlan(
  shell: Shell,
  plan: Plan,
  { contextAt, shown }: { contextAt: Contexts; shown: SecretOutput },
): Promise<void> {
  note(shell, describePlan(plan, shell))
  let done = 0
  const all = plan.organizations.flatMap(({ domain, steps }) =>
    steps.map((step) => ({ domain, step })),
  )
  // In the order of the plan: steps use ids of earlier ones.
  for (const { domain, step } of all) {
    try {
      for (const call of step.calls) await perform(call, contextAt)
    } catch (error) {
      throw failureOf(error, { domain, step, done, count: all.length })
    }
    done++
  }
  if (done > 0) note(shell, `Applied ${done} change${done === 1 ? '' : 's'}.`)
  if (shown.count() > 0)
    note(shell, 'The secrets above, or in the file of --secrets, are shown this once.')
}

async function perform(
  { where, operation, request, onAnswer }: Call,
  contextAt: Contexts,
): Promise<void> {
  const place =
    where === 'admin' ? where : { at: where.at, organization_id: where.organization.id ?? '' }
  const answer = await performOperation(contextAt(place, operation), request())
  await onAnswer?.(answer as Record<string, unknown>)
}

// The steps before this one stay. A second run plans again from what is stored, so nothing is done twice.
function failureOf(
  error: unknown,
  { domain, step, done, count }: { domain: string; step: Step; done: number; count: number },
): CliError {
  const fields = (error as { errors?: readonly { field: string; detail: string }[] }).errors ?? []
  const why = [
    error instanceof Error ? error.message : String(error),
    ...fields.map(({ field, detail }) => `  ${field}: ${detail}`),
  ].join('\n')
  return new CliError(
    `${domain}: ${step.subject} failed: ${why}\n${done} of ${count} changes are applied. Run the command again to continue.`,
    { cause: error },
  )
}

// The marks of a diff, as tools for infrastructure show them.
const colours = { '+': 'green', '~': 'yellow', '-': 'red' } as const

/** A plan as a diff, one line per change and one per field. */
function describePlan({ organizations, extras }: Plan, { stdout }: Pick<Shell, 'stdout'>): string {
  const lines = organizations
    .filter(({ steps }) => steps.length > 0)
    .flatMap(({ domain, steps }) => [
      domain,
      ...steps.flatMap(({ mark, subject, details }) => [
        styleText(colours[mark], `  ${mark} ${subject}`, { stream: stdout }),
        ...details.map((detail) => `      ${detail}`),
      ]),
    ])
  const marks = organizations.flatMap(({ steps }) => steps.map(({ mark }) => mark))
  const count = (mark: string) => marks.filter((one) => one === mark).length
  const sum =
    marks.length === 0
      ? 'Nothing to change: the installation is as the document says.'
      : `${count('+')} to create, ${count('~')} to change, ${count('-')} to remove.`
  const rest =
    extras.length === 0
      ? []
      : [
          `Not in the document, and left as they are (--prune removes them): ${extras.length}`,
          // Twenty lines fit a terminal; the count above shows the rest.
          ...extras.slice(0, 20).map((extra) => `  ${extra}`),
          ...(extras.length > 20 ? [`  and ${extras.length - 20} more`] : []),
        ]
  return [...lines, sum, ...rest].join('\n')
}
