import { Address } from '@ton/core'
import { ApiError, type Methods, type Params, readOptionalNumber, readText } from './api-error.ts'
import type { Fault, FaultKind, Faults } from './faults.ts'
import type { Jetton, JettonMetadata } from './jetton.ts'

/** Controls of the chain that a real one does not have. */
export type Controls = {
  fund(address: string, amount: bigint): Promise<string>
  mine(blocks: number): Promise<number>
  setDepth(depth: number): void
  split(shard: bigint): void
  merge(shard: bigint): void
  deployJetton(metadata: JettonMetadata): Promise<Jetton>
}

const kinds: readonly FaultKind[] = [
  ...['404', '429', '500', 'timeout', 'reset'],
  ...['stale', 'lag', 'pruned', 'wrong_hash'],
] as FaultKind[]

/** The methods under `/dev`. */
export function createControl(controls: Controls, faults: Faults): Methods {
  const jettons = new Map<string, Jetton>()
  const method = (takes: readonly string[], answer: (params: Params) => unknown) => ({
    takes,
    answer,
  })
  const amountOf = (params: Params): bigint => {
    const text = String(params.amount ?? '')
    if (!/^\d+$/.test(text)) throw new ApiError(422, 'amount: a whole number is expected')
    return BigInt(text)
  }
  const shardOf = (params: Params): bigint => BigInt(`0x${readText(params, 'shard')}`)
  return {
    fund: method(['address', 'amount'], async (params) => ({
      transaction_hash: await controls.fund(readText(params, 'address'), amountOf(params)),
    })),
    mine: method(['blocks'], async (params) => ({
      seqno: await controls.mine(readOptionalNumber(params, 'blocks') ?? 1),
    })),
    depth: method(['depth'], (params) => {
      controls.setDepth(readOptionalNumber(params, 'depth') ?? 0)
      return {}
    }),
    split: method(['shard'], (params) => {
      controls.split(shardOf(params))
      return {}
    }),
    merge: method(['shard'], (params) => {
      controls.merge(shardOf(params))
      return {}
    }),
    fault: method(['kind', 'method', 'times', 'probability', 'blocks'], (params) => {
      const kind = kinds.find((one) => one === params.kind)
      if (!kind) throw new ApiError(422, `kind: one of ${kinds.join(', ')} is expected`)
      const times = readOptionalNumber(params, 'times')
      const blocks = readOptionalNumber(params, 'blocks')
      const fault: Fault = {
        kind,
        ...(typeof params.method === 'string' && { method: params.method }),
        ...(times !== undefined && { times }),
        ...(blocks !== undefined && { blocks }),
        ...(params.probability !== undefined && { probability: Number(params.probability) }),
      }
      faults.add(fault)
      return {}
    }),
    clear_faults: method([], () => {
      faults.clear()
      return {}
    }),
    deploy_jetton: method(['name', 'symbol', 'decimals'], async (params) => {
      const jetton = await controls.deployJetton({
        name: String(params.name ?? 'Development token'),
        symbol: String(params.symbol ?? 'DEV'),
        decimals: readOptionalNumber(params, 'decimals') ?? 9,
      })
      const token_address = jetton.master.toRawString()
      jettons.set(token_address, jetton)
      return { token_address }
    }),
    mint_jetton: method(['token_address', 'address', 'amount', 'forward'], async (params) => {
      const jetton = jettons.get(Address.parse(readText(params, 'token_address')).toRawString())
      if (!jetton) throw new ApiError(404, 'token_address: is not a token that was deployed here')
      const owner = Address.parse(readText(params, 'address'))
      await jetton.mint(owner, amountOf(params), BigInt(String(params.forward ?? 0)))
      return { token_account_address: jetton.holderOf(owner).toRawString() }
    }),
  }
}
