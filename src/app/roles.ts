import type { ServerRole } from './config/server-roles.ts'

/** What a process runs, by the roles that the configuration gives it. */
export type Roles = {
  list: readonly ServerRole[]
  has(role: ServerRole): boolean
  /** Answers clients: operations or the gateway. */
  isServing: boolean
  /** Uses the networks of wallets: to answer operations, to track or to send. */
  hasWallets: boolean
  /** Does work that no client waits for. */
  isBackground: boolean
}

/** The roles of a process. */
export function rolesOf(list: readonly ServerRole[]): Roles {
  const set: ReadonlySet<ServerRole> = new Set(list)
  const has = (role: ServerRole): boolean => set.has(role)
  return {
    list,
    has,
    isServing: has('api') || has('gateway'),
    hasWallets: has('api') || has('tracker') || has('sender'),
    isBackground: has('tracker') || has('courier') || has('sender'),
  }
}
