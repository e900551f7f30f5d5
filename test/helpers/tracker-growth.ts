import type { BlockRef } from '../../src/chains/chain.ts'
import type { ScriptedTransaction } from '../../src/chains/testing/scripted-block.ts'
import type { AssetKey } from '../../src/contract/records/assets.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import type { WalletBench } from './wallets.ts'

/** Random numbers of a seed. */
export type Dice = { random(): number; pick(count: number): number; chance(share: number): boolean }

/** How many accounts take part in transfers. */
export const accounts = 7

/** The tokens that a world moves, known to its chain. */
export const createTokens = ({ chain, account }: WalletBench, service: WalletService) => {
  const hasRules = service === 't' || service === 's'
  const ruled = (text: string): AssetKey => {
    const parsed = chain.parseToken!(text)
    if (!parsed.ok) throw new Error(parsed.detail)
    const asset_type = chain.native.asset_type
    return { asset_type, contract_address: parsed.bytes, token_id: 0n }
  }
  const ruledTexts =
    service === 's'
      ? ['0x5::coral::CORAL', '0x6::pearl::PEARL']
      : [`0:${'5'.repeat(64)}`, `0:${'6'.repeat(64)}`]
  const contractTokens: AssetKey[] = [
    { asset_type: 'ASSET_TYPE_ERC20', contract_address: account(71), token_id: 0n },
    { asset_type: 'ASSET_TYPE_ERC721', contract_address: account(72), token_id: 1n },
    { asset_type: 'ASSET_TYPE_ERC721', contract_address: account(72), token_id: 2n },
  ]
  const tokens = hasRules ? ruledTexts.map(ruled) : contractTokens
  for (const { asset_type, contract_address } of tokens)
    chain.addToken(contract_address, asset_type.replace('ASSET_', 'CONTRACT_'))
  return { tokens, hasRules }
}

/** Lets the chain of a world grow, fork and return to branches that it left. */
export const createGrowth = (
  { chain, account }: WalletBench,
  { service, tokens, hasRules }: { service: WalletService; tokens: AssetKey[]; hasRules: boolean },
  { random, pick, chance }: Dice,
) => {
  const randomTransaction = (): ScriptedTransaction => {
    const payer = account(pick(accounts))
    const kind = random()
    if (kind < 0.05) return { payer, fee: 1n }
    if (kind < 0.1) return { unknown_kind: 'other' }
    const failed = service === 'c' && kind < 0.2
    const movements = Array.from({ length: 1 + pick(3) }, () => {
      const isToken = (service === 'c' || hasRules) && !failed && chance(0.5)
      const to = account(pick(accounts))
      if (!isToken) return { from: payer, to, value: BigInt(pick(40)) }
      const asset = tokens[pick(tokens.length)]!
      // Tokens come from nowhere, so that no balance goes below zero.
      return { to, value: BigInt(1 + pick(9)), asset }
    })
    return { payer, fee: BigInt(pick(3)), failed, movements }
  }
  const randomBlock = (): ScriptedTransaction[] =>
    Array.from({ length: pick(4) }, randomTransaction)

  const canLack = service === 'c' || service === 's'
  const isSpoiled = (number: number): boolean => chain.spoiled().includes(number)
  const grow = () => {
    for (let left = 1 + pick(4); left > 0; left--) {
      const { number } = chain.mine(randomBlock())
      if (canLack && chance(0.08)) chain.spoil(number, 'unreadable')
    }
    // What was not seen of a gap is read at the first block after it.
    while (isSpoiled(chain.canonical().length - 1)) chain.mine(randomBlock())
  }
  /** The heads of branches that were left, which may come back. */
  const left: BlockRef[] = []
  /** So many blocks in which nothing moves: what was forgotten is not read because of a later movement. */
  const rest = (blocks: number) => {
    for (let more = blocks; more > 0; more--) chain.mine([])
    // They are too far behind.
    left.length = 0
  }
  const leave = () => {
    const { number, hash } = chain.canonical().at(-1)!
    left.push({ number, hash })
    if (left.length > 6) left.shift()
  }
  /** The block to which the tracker was rewound: no branch begins below it. */
  let floor = 0
  /** Replaces some blocks, or all above the one to which the tracker will be rewound. */
  const fork = (rewound?: number) => {
    const blocks = chain.canonical()
    floor = rewound ?? floor
    const deepest = blocks.length - 1 - floor
    const depth = rewound === undefined ? Math.min(1 + pick(6), deepest) : deepest
    if (depth < 1 && floor > 0) return
    if (rewound === undefined) leave()
    else left.length = 0
    // Some transactions of the branch that is left stand on the new one too.
    const dropped = blocks.slice(-depth).flatMap(({ transactions }) => transactions)
    const least = rewound === undefined ? 1 : depth
    const branch = Array.from({ length: least + pick(8) }, randomBlock)
    for (const transaction of dropped)
      if (chance(0.3)) branch[pick(branch.length)]!.push({ ...transaction })
    chain.reorganize(depth, branch)
  }
  /** Goes back to a branch that was left, which may have grown meanwhile. */
  const comeBack = () => {
    const onChain = new Set(chain.canonical().map(({ hash }) => hash.toString('hex')))
    const others = left.filter(({ hash }) => !onChain.has(hash.toString('hex')))
    const head = others[pick(others.length)]
    if (!head) return
    leave()
    chain.resume(head)
    if (chance(0.5)) grow()
  }
  return { grow, rest, fork, comeBack, isSpoiled }
}
