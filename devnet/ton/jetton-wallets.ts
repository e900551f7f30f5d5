import { Address, beginCell, Cell, getMethodId, parseTuple, type TupleItem } from '@ton/core'
import type { TonChain } from './chain.ts'
import codes from './contracts/contract-code.json' with { type: 'json' }

/** A jetton wallet as an index knows it. */
export type JettonWallet = {
  address: string
  balance: bigint
  owner: string
  jetton: string
  last_lt: bigint
  code: Cell
  data: Cell
}

const holderCode = Cell.fromBase64(codes['jetton-holder'])

/** The jetton wallets that an index lists: those that their master confirms. */
export async function findJettonWallets(
  chain: TonChain,
  wanted: Record<'address' | 'owner' | 'jetton', readonly Address[] | undefined>,
  seqno: number,
): Promise<JettonWallet[]> {
  const texts = (addresses: readonly Address[] | undefined) =>
    addresses && new Set(addresses.map((address) => address.toRawString()))
  const [owners, jettons] = [texts(wanted.owner), texts(wanted.jetton)]
  const candidates = [...(texts(wanted.address) ?? chain.store.accounts())].toSorted()
  const found: JettonWallet[] = []
  for (const address of candidates) {
    const { code, data, last_lt } = chain.account(address, seqno)
    if (!code || !data || (!wanted.address && !code.equals(holderCode))) continue
    const answer = await ask(chain, { address, method: 'get_wallet_data', seqno })
    const [balance, owner, jetton] = answer ?? []
    const [ownerText, jettonText] = [readAddress(owner), readAddress(jetton)]
    if (balance?.type !== 'int' || !ownerText || !jettonText) continue
    if (owners?.has(ownerText) === false || jettons?.has(jettonText) === false) continue
    const cell = beginCell().storeAddress(Address.parseRaw(ownerText)).endCell()
    const stack: TupleItem[] = [{ type: 'slice', cell }]
    const method = 'get_wallet_address'
    const derived = await ask(chain, { address: jettonText, method, stack, seqno })
    if (readAddress(derived?.[0]) !== address) continue
    const common = { address, balance: balance.value, last_lt, code, data }
    found.push({ ...common, owner: ownerText, jetton: jettonText })
  }
  return found
}

async function ask(
  chain: TonChain,
  question: { address: string; method: string; stack?: TupleItem[]; seqno: number },
): Promise<TupleItem[] | undefined> {
  const { address, method, stack = [], seqno } = question
  const { code, data, balance } = chain.account(address, seqno)
  if (!code || !data) return undefined
  const answer = await chain.rules.ask(
    { address: Address.parseRaw(address), code, data, balance },
    { method: getMethodId(method), stack, utime: chain.head().utime },
  )
  return answer.exit_code <= 1 && answer.exit_code >= 0
    ? parseTuple(Cell.fromBase64(answer.stack_boc))
    : undefined
}

const readAddress = (item: TupleItem | undefined): string | undefined => {
  if (item?.type !== 'slice' && item?.type !== 'cell') return undefined
  try {
    return item.cell.beginParse().loadAddress().toRawString()
  } catch {
    return undefined
  }
}
