import { join } from 'node:path'
import { isToBeFetched } from './anvil/locate.ts'
import type { DevChain } from './dev-chain.ts'
import { devChains } from './dev-chains.ts'
import type { EvmDevChain } from './evm/dev-chain.ts'
import { deployTokens } from './evm/tokens.ts'
import type { DevContracts, DevTag, FromKeeper, ToKeeper } from './keeper-messages.ts'
import { endLeftover, noteProcess } from './leftover.ts'
import { startTraffic, type Traffic } from './traffic.ts'

// A process of its own, so that executing blocks never makes the service wait. It is the child of the
// service: when that is gone, however it ended, the channel closes and the chains stop.

const [directory = '', tags = ''] = process.argv.slice(2)
const chains = new Map<DevTag, DevChain>()
const tokens = new Map<DevTag, DevContracts>()
let traffic: Traffic | undefined
let forget: (() => Promise<void>) | undefined

const send = (message: FromKeeper) => {
  if (process.connected) process.send?.(message)
}

async function start(tag: DevTag): Promise<void> {
  try {
    const folder = join(directory, tag)
    const chain = await devChains[tag]({ directory: folder })
    chains.set(tag, chain)
    const { node_url, node_ws_url, faucet_address, faucet_key } = chain
    const contracts = isEvm(chain) ? await deployTokens(chain, folder) : undefined
    if (contracts) tokens.set(tag, contracts)
    send({
      kind: 'started',
      chain: tag,
      facts: {
        node_url,
        ...(node_ws_url !== undefined && { node_ws_url }),
        faucet_address,
        ...(faucet_key !== undefined && { faucet_key }),
        ...(contracts && { contracts }),
      },
    })
  } catch (error) {
    send({ kind: 'failed', chain: tag, reason: reasonOf(error) })
  }
}

const isEvm = (chain: DevChain): chain is EvmDevChain => 'reorganize' in chain
const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

async function answer(id: number, work: () => Promise<string>): Promise<void> {
  try {
    send({ kind: 'done', id, result: await work() })
  } catch (error) {
    send({ kind: 'refused', id, reason: reasonOf(error) })
  }
}

/** Ports of nodes that were stopped, so that they return to their address. */
const stoppedPorts = new Map<DevTag, number>()

async function stopNode(tag: DevTag): Promise<string> {
  const chain = running(tag)
  chains.delete(tag)
  stoppedPorts.set(tag, Number(new URL(chain.node_url).port))
  await chain.stop()
  return tag
}

async function startNode(tag: DevTag): Promise<string> {
  const port = stoppedPorts.get(tag)
  if (port === undefined) throw new Error(`The node of chain ${tag} was not stopped.`)
  stoppedPorts.delete(tag)
  try {
    chains.set(tag, await devChains[tag]({ directory: join(directory, tag), port }))
  } catch (error) {
    stoppedPorts.set(tag, port)
    throw error
  }
  return tag
}

async function mine(tag: DevTag, blocks: number): Promise<string> {
  const chain = running(tag)
  if (!chain.mineBlocks) throw new Error(`Chain ${tag} makes its blocks by itself.`)
  await chain.mineBlocks(blocks)
  return `${blocks}`
}

function running(tag: DevTag): DevChain {
  const chain = chains.get(tag)
  if (!chain) throw new Error(`The node of chain ${tag} is stopped.`)
  return chain
}

async function reorganize(depth: number): Promise<string> {
  const chain = running('c')
  if (!isEvm(chain)) throw new Error('Chain c does not reorganize.')
  await chain.reorganize(depth)
  send({ kind: 'reorganized', depth })
  return `${depth}`
}

process.on('message', (message: ToKeeper) => {
  if (message.kind === 'traffic') {
    traffic ??= startTraffic({ chains, tokens, targets: message.targets, reorganize })
    return
  }
  void answer(message.id, async () => {
    switch (message.kind) {
      case 'reorganize':
        return await reorganize(message.depth)
      case 'mine':
        return await mine(message.chain, message.blocks)
      case 'stop':
        return await stopNode(message.chain)
      case 'start':
        return await startNode(message.chain)
      case 'fund':
        return await running(message.chain).fund(message.address, BigInt(message.amount))
    }
  })
})

let isStopping = false
async function stop(): Promise<void> {
  if (isStopping) return
  isStopping = true
  await traffic?.stop()
  await Promise.allSettled([...chains.values()].map((chain) => chain.stop()))
  await forget?.()
  process.exit(0)
}
process.on('disconnect', () => void stop())
process.on('SIGTERM', () => void stop())
// Ctrl-C reaches every process of the terminal; the service stops before its chains.
process.on('SIGINT', () => {})
process.on('SIGHUP', () => {})

// That of a service that was killed a moment ago may still be writing.
await endLeftover(directory, 'keeper')
forget = await noteProcess(directory, 'keeper', process.pid)
const wanted = tags.split(',') as DevTag[]
const evm = wanted.filter((tag) => tag === 'c' || tag === 'q')
if (evm.length > 0 && isToBeFetched('anvil')) send({ kind: 'fetching', chains: evm })
await Promise.all(wanted.map(start))
send({ kind: 'ready' })
