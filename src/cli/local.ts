import type { Config } from '../app/config/schema.ts'
import { openInstallation } from '../app/installation.ts'
import { accessOf, onlyShows } from '../contract/access.ts'
import { type Catalogue, findOperation } from '../contract/operations/catalogue.ts'
import { createProjection } from '../contract/project.ts'
import type { Context } from '../domain/context.ts'
import { prepareOperation } from '../domain/handlers.ts'
import { silentLog } from '../lib/log.ts'
import { audited } from './audited.ts'
import { readConfig } from './configuration.ts'
import { type GlobalOptions, note, type Shell } from './shell.ts'

type Admin = Catalogue<'admin'>

/** An installation that a command works on as its operator. */
export type Local = {
  config: Config
  /** For the domain functions that no operation offers. */
  context: Context
  /** Runs an administration operation as the service would, without a credential. */
  run<name extends keyof Admin>(
    name: name,
    request: Admin[name]['request'],
  ): Promise<Admin[name]['response']>
}

const nil = '00000000-0000-0000-0000-000000000000'

/** Access to the database gives every right; no credential stands behind this principal. */
export const operatorOf = (organization_id: string = nil) =>
  ({ credential_id: nil, organization_id, role: 'ROLE_ADMIN' }) as const

/** Opens the installation for the time of the work, whether the service is running or not. */
export async function withLocal(
  shell: Shell,
  options: GlobalOptions,
  work: (local: Local) => Promise<void>,
): Promise<void> {
  const config = readConfig(shell, options)
  const log = { ...silentLog, warn: (_: object, message: string) => note(shell, message) }
  const { stop, ...installation } = await openInstallation({
    config,
    env: shell.env,
    cwd: shell.cwd,
    log,
  })
  const { signal } = new AbortController()
  const contextOf = (operation: string): Context => ({
    ...installation,
    principal: operatorOf(),
    service: 'admin',
    chain: 'admin',
    operation,
    signal,
  })
  try {
    await work({
      config,
      context: contextOf('command line'),
      run: async (name, request) =>
        (await performOperation(contextOf(name), request)) as Admin[typeof name]['response'],
    })
  } finally {
    await stop()
  }
}

/** Checks and performs the operation of a context as the service would; a change is audited. */
export async function performOperation(context: Context, request: object): Promise<object> {
  const { service, operation, principal } = context
  const entry = findOperation(service, operation)
  const prepare = entry && prepareOperation(entry)
  if (!prepare) throw new Error(`${operation} is not an operation of ${service} in this version.`)
  const prepared = prepare(request)
  // The request of a chain does not name the organization: its own log must have the event.
  const about = service === 'admin' ? {} : { organization_id: principal.organization_id }
  const answer =
    accessOf(entry) === 'read' && !onlyShows(operation)
      ? await prepared.perform(context)
      : await audited(
          context.db,
          { service, operation, request: { ...about, ...prepared.request } },
          (concerns) => prepared.perform({ ...context, concerns }),
        )
  return createProjection<object>(entry)(answer)
}

/** All items of a list, page after page. */
export async function everyPage<item>(
  load: (page: { page_size: number; page_token?: string }) => Promise<{
    items: readonly item[]
    next: string
  }>,
): Promise<item[]> {
  const all: item[] = []
  for (let token: string | undefined; token !== ''; ) {
    const page = await load({ page_size: 100, ...(token !== undefined && { page_token: token }) })
    all.push(...page.items)
    token = page.next
  }
  return all
}
