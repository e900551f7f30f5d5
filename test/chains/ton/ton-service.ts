import {
  startTonDevChain,
  type TonDevChain,
  type TonDevChainOptions,
} from '../../../devnet/ton/ton-dev-chain.ts'
import type { Overrides } from '../../../src/app/config/schema.ts'
import { findCursor } from '../../../src/storage/tracking/blocks.ts'
import { type Answer, startTestApp, type TestApp } from '../../helpers/app.ts'
import { waitFor } from '../../helpers/wait-for.ts'

/** The service on a development chain, and an organization that uses it. */
export type TonService = {
  dev: TonDevChain
  app: TestApp
  /** The answer of an operation of T; throws when it is a refusal. */
  call(operation: string, request?: object): Promise<Answer['json']>
  /** The answer whatever it is. */
  ask(operation: string, request?: object): Promise<Answer>
  /** Makes blocks and waits until the service has stored them. */
  mine(blocks?: number): Promise<void>
  /** Waits until the service has stored the newest block. */
  caughtUp(): Promise<void>
  /** Waits until what the service shows of an address is what the chain has, or this much of a token. */
  balanced(address: string, token?: { token_address: string; balance: bigint }): Promise<void>
}

/** Starts a chain that makes blocks on command, and the service on it. */
export const startTonService = async (
  options: TonDevChainOptions = {},
  upstreams?: (dev: TonDevChain) => Promise<{ url: string }[]>,
): Promise<TonService> => {
  const dev = await startTonDevChain({ blockTimeMs: 0, startTime: 1_800_000_000, ...options })
  const nodes = (await upstreams?.(dev)) ?? [{ url: dev.node_url }]
  const t = { networks: { mainnet: { upstreams: nodes } } }
  const app = await startTestApp({ config: { chains: { t } as unknown as Overrides['chains'] } })
  const { member } = await app.createTenant()
  const ask: TonService['ask'] = (operation, request = {}) =>
    app.call(member, `t/${operation}`, request)
  const stored = async (): Promise<number> => {
    const { db } = app.database
    const { network_id } = await db
      .selectFrom('network')
      .select('network_id')
      .where('chain', '=', 't')
      .executeTakeFirstOrThrow()
    return (await findCursor(db, network_id))?.block_number ?? -1
  }
  const caughtUp = () =>
    waitFor(
      'the service has the newest block',
      async () => (await stored()) >= dev.chain.head().id.seqno,
      {
        timeoutMs: 40_000,
      },
    )
  const call: TonService['call'] = async (operation, request) => {
    const { status, json, text } = await ask(operation, request)
    if (status !== 200) throw new Error(`${operation}: ${status} ${text}`)
    return json
  }
  const balanced: TonService['balanced'] = (address, token) =>
    waitFor(`the balance of ${address}`, async () => {
      const token_address = token?.token_address ?? ''
      const { assets } = await call('ListAssets', {
        address,
        asset_type: 'ASSET_TYPE_T',
        ...(token && { token_address }),
      })
      const shown = assets.find(
        (asset: Record<string, string>) => (asset.token_address ?? '') === token_address,
      )?.balance
      return BigInt(shown ?? -1) === (token ? token.balance : dev.chain.account(address).balance)
    })
  await caughtUp()
  return {
    dev,
    app,
    ask,
    call,
    balanced,
    mine: async (blocks) => {
      await dev.mine(blocks)
      await caughtUp()
    },
    caughtUp,
  }
}
