import { Blake2128Concat } from '@polkadot-api/substrate-bindings'
import { fromHex, keyText, readUint, storageKey, uint, withLength } from './bytes.ts'
import type { Changes } from './state.ts'

/** As much of a chain specification as a chain begins with. */
export type ChainSpec = {
  name: string
  para_id: number
  properties: { tokenDecimals?: number; tokenSymbol?: string; ss58Format?: number }
  genesis: { raw: { top: Record<string, string> } }
}

const packageName = '@substrate/connect-known-chains'

/**
 * The specification of Rococo's Asset Hub, the one public chain of that kind whose package has its
 * whole first state. The package is under the GPL: it is loaded here and never copied anywhere.
 */
export async function loadChainSpec(
  load: (name: string) => Promise<{ chainSpec: string }> = (name) => import(name),
): Promise<ChainSpec> {
  const found = await load(`${packageName}/rococo_v2_2_asset_hub`).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
      return undefined
    },
  )
  if (!found)
    throw new Error(
      `The Polkadot dev node needs the npm package ${packageName} (GPL-3.0), which holds the ` +
        'chain that it runs. It is not installed: npm install --no-save ' +
        `${packageName}@1.10.3`,
    )
  return JSON.parse(found.chainSpec) as ChainSpec
}

/** Who has how much from the beginning. */
export type Endowment = { account: Uint8Array; amount: bigint }

/** The first state of a chain. Without endowments it is the published one. */
export function genesisOf({ genesis }: ChainSpec, endowments: readonly Endowment[]): Changes {
  const state: Changes = new Map()
  for (const [key, value] of Object.entries(genesis.raw.top))
    state.set(keyText(fromHex(key)), fromHex(value))
  const issuance = storageKey('Balances', 'TotalIssuance')
  let issued = readUint(state.get(issuance) ?? new Uint8Array())
  for (const { account, amount } of endowments) {
    issued += amount
    state.set(accountKey(account), accountOf(amount))
  }
  if (endowments.length > 0) state.set(issuance, uint(issued, 16))
  return state
}

/** The code of the runtime in a first state. */
export const codeIn = (genesis: Changes): Uint8Array =>
  genesis.get(keyText(Buffer.from(':code'))) ?? new Uint8Array()

/** Puts code there that waits for the relay chain's word. */
export const setWaitingCode = (genesis: Changes, code: Uint8Array): void =>
  void genesis.set(storageKey('ParachainSystem', 'PendingValidationCode'), withLength(code))

/** Where the balance of an account is stored. */
export const accountKey = (account: Uint8Array): string =>
  storageKey('System', 'Account', Blake2128Concat(Uint8Array.from(account)))

// nonce, consumers, providers, sufficients, free, reserved and two kinds of frozen.
const accountOf = (free: bigint): Buffer =>
  Buffer.concat([uint(0, 4), uint(0, 4), uint(1, 4), uint(0, 4), uint(free, 16), Buffer.alloc(48)])
