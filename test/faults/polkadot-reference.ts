import { getDynamicBuilder, getLookupFn } from '@polkadot-api/metadata-builders'
import {
  Blake2128Concat,
  Blake2256,
  decAnyMetadata,
  getSs58AddressInfo,
  unifyMetadata,
} from '@polkadot-api/substrate-bindings'

/** Asks a node over HTTP. */
export type AskNode = <result>(method: string, ...params: unknown[]) => Promise<result>

/** A transfer as the chain has it. */
export type ReferenceTransfer = {
  block_height: number
  transaction_hash: string
  from: Buffer
  to: Buffer
  value: string
  transaction_fee: string
}

type EventValue = { from?: string; to?: string; who?: string; account?: string; amount?: bigint }
type EventRecord = {
  phase: { type: string; value?: number }
  event: { type: string; value: { type: string; value: EventValue } }
}

const events = '0x26aa394eea5630e07c48ae0c9558cef780d41e5e16056765bc8461851072c9d7'
const accounts = '0x26aa394eea5630e07c48ae0c9558cef7b99d880ec681799c0cf30e8886371da9'

const accountOf = (address: string): Buffer => {
  const info = getSs58AddressInfo(address)
  if (!info.isValid) throw new Error(`not an address: ${address}`)
  return Buffer.from(info.publicKey)
}

/** Sender and receiver of an event that changes balances; one of them may be missing. */
function endsOf(
  name: string,
  value: EventValue,
): [string | undefined, string | undefined] | undefined {
  switch (name) {
    case 'Transfer':
    case 'ReserveRepatriated':
      return [value.from, value.to]
    case 'Deposit':
      return [undefined, value.who]
    case 'Withdraw':
    case 'Slashed':
      return [value.who, undefined]
    case 'DustLost':
      return [value.account, undefined]
    default:
      return undefined
  }
}

/**
 * Reads a chain from its final blocks, one after the other, with the libraries' own codecs: another
 * way than the service's, to the same end. Fees are those of runtimes that only withdraw.
 */
export async function readChain(
  ask: AskNode,
  { after, accounts: wanted }: { after: number; accounts: readonly Buffer[] },
): Promise<{
  head: number
  transfers: ReferenceTransfer[]
  /** At the head, and how much of it came since the beginning. */
  balances: { account: Buffer; balance: string; change: bigint }[]
}> {
  const bytes = (hex: string) => Uint8Array.from(Buffer.from(hex.slice(2), 'hex'))
  const metadata = unifyMetadata(decAnyMetadata(bytes(await ask<string>('state_getMetadata'))))
  const builder = getDynamicBuilder(getLookupFn(metadata))
  const eventsCodec = builder.buildStorage('System', 'Events').value
  const accountCodec = builder.buildStorage('System', 'Account').value
  const final = await ask<string>('chain_getFinalizedHead')
  const head = Number((await ask<{ number: string }>('chain_getHeader', final)).number)
  const isWanted = (account: Buffer) => wanted.some((one) => one.equals(account))
  const transfers: ReferenceTransfer[] = []

  for (let number = after + 1; number <= head; number++) {
    const hash = await ask<string>('chain_getBlockHash', number)
    const { block } = await ask<{ block: { extrinsics: string[] } }>('chain_getBlock', hash)
    const records = eventsCodec.dec(
      bytes(await ask<string>('state_getStorage', events, hash)),
    ) as EventRecord[]
    const hashOf = (extrinsic: number) =>
      `0x${Buffer.from(Blake2256(bytes(block.extrinsics[extrinsic]!))).toString('hex')}`
    // The first withdrawal names the payer; without a transfer of its own it has a record of the fee.
    for (const extrinsic of block.extrinsics.keys()) {
      const own = records.filter(({ phase }) => phase.value === extrinsic)
      const paid = own.find(({ event }) => event.value.type === 'Withdraw')?.event.value.value
      const sends = own.some(
        ({ event }) => event.value.type === 'Transfer' && event.value.value.from === paid?.who,
      )
      if (!paid?.who || sends || !isWanted(accountOf(paid.who))) continue
      transfers.push({
        block_height: number,
        transaction_hash: hashOf(extrinsic),
        from: accountOf(paid.who),
        to: Buffer.alloc(0),
        value: '0',
        transaction_fee: paid.amount!.toString(),
      })
    }
    for (const [index, { phase, event }] of records.entries()) {
      if (event.type !== 'Balances') continue
      const ends = endsOf(event.value.type, event.value.value)
      if (!ends) continue
      const extrinsic = phase.type === 'ApplyExtrinsic' ? phase.value : undefined
      // The withdrawal of the fee is no record of its own.
      const isFee =
        event.value.type === 'Withdraw' &&
        index ===
          records.findIndex(
            (other) => other.phase.value === extrinsic && other.event.value.type === 'Withdraw',
          )
      if (isFee || !ends.some((end) => end && isWanted(accountOf(end)))) continue
      const [from, to] = ends.map((end) => (end ? accountOf(end) : Buffer.alloc(0)))
      const { amount } = event.value.value as Required<EventValue>
      const paid = records.find(
        (other) => other.phase.value === extrinsic && other.event.value.type === 'Withdraw',
      )
      transfers.push({
        block_height: number,
        transaction_hash: extrinsic === undefined ? hash : hashOf(extrinsic),
        from: from!,
        to: to!,
        value: amount.toString(),
        transaction_fee: (paid?.event.value.value.amount ?? 0n).toString(),
      })
    }
  }
  const balanceAt = async (account: Buffer, hash: string): Promise<bigint> => {
    const key = accounts + Buffer.from(Blake2128Concat(Uint8Array.from(account))).toString('hex')
    const value = await ask<string | null>('state_getStorage', key, hash)
    const { data } = value ? accountCodec.dec(value) : { data: { free: 0n, reserved: 0n } }
    return data.free + data.reserved
  }
  const first = await ask<string>('chain_getBlockHash', after)
  const balances = await Promise.all(
    wanted.map(async (account) => {
      const balance = await balanceAt(account, final)
      const change = balance - (await balanceAt(account, first))
      return { account, balance: balance.toString(), change }
    }),
  )
  return { head, transfers, balances }
}
