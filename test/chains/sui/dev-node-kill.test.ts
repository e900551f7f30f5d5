import { mkdtempSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SuiGrpcClient } from '@mysten/sui/grpc'
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519'
import { Transaction } from '@mysten/sui/transactions'
import { expect, it, onTestFinished } from 'vitest'
import { startSuiDevChain } from '../../../devnet/sui/dev-chain.ts'
import { startSuiNode } from '../../../devnet/sui/node.ts'
import { spawnSuiNode } from './dev-node-process.ts'

const receiver = `0x${'ab'.repeat(32)}`
const newDirectory = () => {
  const directory = mkdtempSync(join(tmpdir(), 'sui-node-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

it('loses nothing that it has shown when it is killed', async () => {
  const directory = newDirectory()
  const shown = new Map<bigint, string>()
  const paid: { digest: string; amount: bigint }[] = []
  for (let round = 0; round < 2; round++) {
    const args = ['--port', '0', '--directory', directory, '--block-time-ms', '5']
    const node = await spawnSuiNode(...args)
    onTestFinished(node.kill)
    const client = new SuiGrpcClient({
      network: 'localnet',
      baseUrl: node.facts.node_url,
      format: 'binary',
    })
    for (const { digest } of paid.slice(-3))
      expect((await client.getTransaction({ digest })).Transaction?.digest).toBe(digest)

    const faucet = Ed25519Keypair.fromSecretKey(node.facts.faucet_key)
    const paying = (async () => {
      for (let amount = 1n; ; amount++) {
        const transaction = new Transaction()
        const [coin] = transaction.splitCoins(transaction.gas, [amount])
        transaction.transferObjects([coin], receiver)
        const done = await client.signAndExecuteTransaction({ transaction, signer: faucet })
        paid.push({ digest: done.Transaction!.digest, amount })
      }
    })().catch(() => {})
    const stream = client.subscriptionService.subscribeCheckpoints({
      readMask: { paths: ['digest'] },
    })
    let count = 0
    for await (const { cursor, checkpoint } of stream.responses) {
      shown.set(cursor!, checkpoint!.digest!)
      if (++count >= 60 && paid.length >= 10 * (round + 1)) break
    }
    await node.kill()
    await paying
  }
  const chain = await startSuiDevChain({ directory, blockTimeMs: 0 })
  onTestFinished(chain.stop)
  chain.node.ledger.seal()
  const coins = chain.node.ledger.sealed.coinsOf(receiver)
  const held = coins.reduce((sum, { balance }) => sum + balance, 0n)
  expect(held).toBeGreaterThanOrEqual(paid.reduce((sum, { amount }) => sum + amount, 0n))
  for (const [number, digest] of shown)
    expect(chain.node.ledger.history.at(Number(number))?.digest).toBe(digest)
})

it('gives the same chain for the same seed, and after compacting', async () => {
  const act = async (directory?: string) => {
    const chain = await startSuiDevChain({
      seed: 7,
      blockTimeMs: 0,
      ...(directory && { directory }),
    })
    const digests: string[] = []
    for (let i = 1n; i <= 5n; i++) {
      digests.push(await chain.fund(receiver, i))
      digests.push(chain.node.ledger.seal().digest)
    }
    return { chain, digests }
  }
  const directory = newDirectory()
  const [one, two] = [await act(), await act(directory)]
  expect(two.digests).toEqual(one.digests)
  await one.chain.stop()
  // Opening writes a snapshot, so the second opening reads nothing but that.
  for (let round = 0; round < 2; round++) {
    await two.chain.stop()
    const again = await startSuiDevChain({ seed: 7, directory, blockTimeMs: 0 })
    expect(again.node.ledger.history.newest().digest).toBe(two.digests.at(-1))
    expect([...again.node.ledger.live.coins()].toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
      [...two.chain.node.ledger.live.coins()].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    )
    await again.stop()
  }
  await expect(startSuiDevChain({ seed: 8, directory })).rejects.toThrow('seed 7')
})

it('keeps its memory and its file bounded', async () => {
  const directory = newDirectory()
  const retain = { checkpoints: 300, transactions: 100 }
  const node = await startSuiNode({ directory, retain })
  const { history, seal } = node.ledger
  for (let i = 0; i < 25_000; i++) seal()
  expect(history.lowest()).toBe(25_001 - retain.checkpoints)
  expect(statSync(join(directory, 'sui-chain.jsonl')).size).toBeLessThan(400_000)
  await node.stop()
  const again = await startSuiNode({ directory, retain })
  expect(again.ledger.history.newest()).toEqual(history.newest())
  await again.stop()
})
