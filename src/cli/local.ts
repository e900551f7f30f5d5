import { openInstallation } from '../app/installation.ts'
import { accessOf } from '../contract/access.ts'
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
  /** For the domain functions that no operation offers. */
  context: Context
  /** Runs an administration operation as the service would, without a credential. */
  run<name extends keyof Admin>(
    name: name,
    request: Admin[name]['request'],
  ): Promise<Admin[name]['response']>
}

// Access to the database gives every right; no organization owns this principal.
const operator = {
  credential_id: '00000000-0000-0000-0000-000000000000',
  organization_id: '00000000-0000-0000-0000-000000000000',
  role: 'ROLE_ADMIN',
} as const

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
    principal: operator,
    service: 'admin',
    chain: 'admin',
    operation,
    signal,
  })
  try {
    await work({
      context: contextOf('command line'),
      run: async (name, request) => {
        const entry = findOperation('admin', name)
        const prepare = entry && prepareOperation(entry)
        if (!prepare) throw new Error(`${name} is not an operation of this version.`)
        const prepared = prepare(request)
        const perform = () => prepared.perform(contextOf(name))
        const answer =
          accessOf(entry) === 'read'
            ? await perform()
            : await audited(
                installation.db,
                { service: 'admin', operation: name, request: prepared.request },
                perform,
              )
        return createProjection<Admin[typeof name]['response']>(entry)(answer)
      },
    })
  } finally {
    await stop()
  }
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
