import type { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519'
import { Transaction } from '@mysten/sui/transactions'
import { fromBase64 } from '@mysten/sui/utils'
import { keyOf } from './accounts.ts'
import { type Coin, SUI } from './coins.ts'
import { type Endpoint, openEndpoint } from './endpoint.ts'
import { gasPrice } from './execute.ts'
import { type Ledger, type LedgerOptions, openLedger } from './ledger.ts'

/** A Sui simulator with its ledger in this process. */
export type SuiNode = Endpoint & {
  ledger: Ledger
  /** The keys of the seed by number: 0 is the faucet, those up to 9 are funded. */
  key(number: number): Ed25519Keypair
  /** Sends native coin in a transaction of its own; the digest. */
  pay(from: Ed25519Keypair, to: string, amount: bigint): Promise<string>
  /** Runs a transaction, whose gas a sponsor may pay; the digest. */
  run(
    from: Ed25519Keypair,
    build: (transaction: Transaction) => void,
    options?: { sponsor?: Ed25519Keypair },
  ): Promise<string>
  /** The same ledger at one more address. */
  openEndpoint(port?: number): Promise<Endpoint>
  stop(): Promise<void>
}

const budget = 50_000_000n

const referenceOf = ({ id, version, digest }: Coin) => ({
  objectId: id,
  version: String(version),
  digest,
})

/** Starts a simulator; without a block time its checkpoints are closed manually. */
export async function startSuiNode(
  options: Partial<LedgerOptions> & { port?: number; blockTimeMs?: number } = {},
): Promise<SuiNode> {
  const { seed = 1, port = 0, blockTimeMs = 0 } = options
  const ledger = openLedger({ ...options, seed })
  const endpoint = await openEndpoint(ledger, port)
  const more: Endpoint[] = []
  const timer =
    blockTimeMs > 0 ? setInterval(() => ledger.seal(Date.now()), blockTimeMs) : undefined
  const keys = new Map<number, Ed25519Keypair>()
  let stopped: Promise<void> | undefined

  // One after the other: each one spends the coin that the last one left.
  let last: Promise<unknown> = Promise.resolve()
  const run: SuiNode['run'] = (from, build, { sponsor } = {}) => {
    const work = async () => {
      const sender = from.toSuiAddress()
      const payer = sponsor?.toSuiAddress() ?? sender
      const coins = ledger.live
        .coinsOf(payer, SUI)
        .toSorted((a, b) =>
          a.balance < b.balance ? 1 : a.balance > b.balance ? -1 : a.id < b.id ? -1 : 1,
        )
      const transaction = new Transaction()
      transaction.setSender(sender)
      if (sponsor) transaction.setGasOwner(payer)
      transaction.setGasPrice(gasPrice)
      transaction.setGasBudget(budget)
      transaction.setGasPayment(coins.slice(0, 1).map(referenceOf))
      build(transaction)
      const bytes = await transaction.build()
      const signers = sponsor ? [from, sponsor] : [from]
      const signed = await Promise.all(signers.map((signer) => signer.signTransaction(bytes)))
      return await ledger.submit(
        bytes,
        signed.map(({ signature }) => fromBase64(signature)),
      )
    }
    const running = last.then(work)
    last = running.catch(() => {})
    return running
  }

  const stop = async () => {
    clearInterval(timer)
    await Promise.all([endpoint, ...more].map((one) => one.close()))
    await last
    ledger.close()
  }
  return {
    ...endpoint,
    ledger,
    key: (number) => {
      const known = keys.get(number) ?? keyOf(seed, number)
      keys.set(number, known)
      return known
    },
    pay: (from, to, amount) =>
      run(from, (transaction) => {
        const [coin] = transaction.splitCoins(transaction.gas, [amount])
        transaction.transferObjects([coin], to)
      }),
    run,
    openEndpoint: async (at) => {
      const opened = await openEndpoint(ledger, at)
      more.push(opened)
      return opened
    },
    stop: () => {
      stopped ??= stop()
      return stopped
    },
  }
}
