import { type Client, createClient, importSecret, PortolanError } from '@portolan/client'
import { type ReadonlySignal, type Signal, signal } from '@preact/signals'
import type { Chain } from './chains.ts'
import { forgetKey, loadKey, saveKey } from './key-store.ts'
import { createLive, type Live } from './live.ts'
import { coversOperation, mayCall, type Role } from './roles.ts'
import type { RpcEntry } from './rpc.ts'

type Identity = Awaited<ReturnType<Client['admin']['GetCurrentCredential']>>

/** A signed-in credential, and what it sees. */
export type Account = {
  client: Client
  api_key: string
  role: Role
  credential: Identity['credential']
  organization: Identity['organization']
  /** Whether local chains run beside the service. */
  isEmbedded: boolean
  chains: readonly Chain[]
  live: Live
  /** What the JSON-RPC playground sent, the newest first. It ends with the session. */
  rpcHistory: Signal<readonly RpcEntry[]>
  /** Whether the key may call an operation, of a chain unless it administers; what it may not is no button. */
  may(operation: string, on?: Pick<Chain, 'chain'>): boolean
  /** The operations of a chain, with the types of variant C: the names are the same in all variants. */
  on(chain: Pick<Chain, 'chain' | 'network' | 'is_default_network'>): Client['c']
}

/** Signing in and out. */
export type Session = {
  /** Undefined while signed out, null until the stored key was looked up. */
  account: ReadonlySignal<Account | undefined | null>
  /** Why the last session ended or could not begin, for the form to sign in. */
  problem: ReadonlySignal<unknown>
  signIn(pair: { api_key: string; api_secret: string }, remember: boolean): Promise<void>
  /** Exchanges the code of a one-time link; where that fails, the key that this browser keeps is used. */
  signInByCode(code: string): Promise<void>
  /** Uses the key that this browser keeps, if any. */
  restore(): Promise<void>
  signOut(): Promise<void>
}

/** Holds the credential in memory. Only a key that cannot be exported is ever stored, and only on request. */
export function createSession(base_url: string): Session {
  const account = signal<Account | undefined | null>(null)
  const problem = signal<unknown>(undefined)

  const end = async (error: unknown): Promise<void> => {
    account.value?.live.stop()
    problem.value = error
    account.value = undefined
    await forgetKey()
  }

  const open = async (api_key: string, key: CryptoKey): Promise<void> => {
    const client = createClient({ base_url, api_key, api_secret: key })
    const [{ credential, organization, embedded }, { chains }] = await Promise.all([
      client.admin.GetCurrentCredential({}),
      client.admin.ListChains({}),
    ])
    const role = credential.role as Role
    account.value?.live.stop()
    problem.value = undefined
    account.value = {
      client,
      api_key,
      role,
      credential,
      organization,
      isEmbedded: embedded,
      chains,
      live: createLive(client, (error) => {
        // The key was revoked or has expired while it was used: nothing of the page works any more.
        if (isRefusal(error)) void end(error)
      }),
      rpcHistory: signal([]),
      may: (operation, on) =>
        mayCall(role, operation) && coversOperation(credential.scopes, operation, on),
      on: ({ chain, network, is_default_network }) =>
        client.chain(chain, is_default_network ? {} : { network }),
    }
  }

  const signIn: Session['signIn'] = async ({ api_key, api_secret }, remember) => {
    const key = await importSecret(api_secret)
    await open(api_key, key)
    if (remember) await saveKey({ api_key, key })
  }

  const exchange = async (code: string): Promise<void> => {
    const answer = await fetch(`${base_url}/dev/v1/sign-in`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
      signal: AbortSignal.timeout(10_000),
    })
    if (!answer.ok)
      throw new Error('This link was used or is too old. Start the service again for a new one.')
    const { admin } = (await answer.json()) as { admin: { api_key: string; api_secret: string } }
    // A link works once; a reload of the page must not end the session.
    await signIn(admin, true)
  }

  const restore = async (): Promise<void> => {
    const stored = await loadKey()
    if (!stored) {
      account.value = undefined
      return
    }
    try {
      await open(stored.api_key, stored.key)
    } catch (error) {
      if (isRefusal(error)) return await end(error)
      // While the service does not answer, the key is kept for the next attempt.
      problem.value = error
      account.value = undefined
    }
  }

  return {
    account,
    problem,
    signIn,
    signInByCode: (code) =>
      exchange(code).catch(async (error: unknown) => {
        if (!account.value) await restore()
        if (!account.value) problem.value = error
      }),
    restore,
    signOut: () => end(undefined),
  }
}

/** Whether a key is not, or no longer, a credential of the service. */
const isRefusal = (error: unknown): boolean =>
  error instanceof PortolanError &&
  (error.reason === 'UNAUTHENTICATED' || error.reason === 'CREDENTIAL_EXPIRED')
