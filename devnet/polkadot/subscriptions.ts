import { fromHex, hash256, keyText, toHex } from './bytes.ts'
import type { ChainNews, PolkadotChain } from './chain.ts'
import { headerJson } from './header.ts'
import { type Method, type Notify, RpcError, type Session } from './rpc.ts'

type Push = (result: unknown) => void

/** What a client may subscribe to. */
type Subscription = {
  /** The name of its notifications. */
  notification: string
  unsubscribe: string
  /** Begins to push; gives what ends it. */
  begin(chain: PolkadotChain, push: Push, params: unknown[]): () => void
}

const heads =
  (kind: ChainNews['kind']): Subscription['begin'] =>
  (chain, push) => {
    push(headerJson((kind === 'best' ? chain.best() : chain.final()).header))
    return chain.subscribe((news) => {
      if (news.kind === kind) push(headerJson(news.block.header))
    })
  }

/** The version at the beginning, and whenever the code has changed. */
const runtimeVersion: Subscription['begin'] = (chain, push) => {
  let shown = chain.codeOf(chain.best().state)
  push(shown.version)
  return chain.subscribe(({ kind }) => {
    const code = chain.codeOf(chain.best().state)
    if (kind !== 'best' || code === shown) return
    shown = code
    push(code.version)
  })
}

/** The values of some keys at the beginning, and those that a best block changed. */
const storage: Subscription['begin'] = (chain, push, [keys]) => {
  const names = (keys as string[]).map((key) => [key, keyText(fromHex(key))] as const)
  let shown = new Map<string, Uint8Array | null>()
  const show = () => {
    const { hash, state } = chain.best()
    const values = new Map(names.map(([key, name]) => [key, state.get(name)]))
    const changes = [...values].filter(([key, value]) => {
      const before = shown.get(key)
      return before === undefined || (before ? !value || Buffer.compare(before, value) : value)
    })
    shown = values
    if (changes.length > 0)
      push({ block: hash, changes: changes.map(([key, value]) => [key, value && toHex(value)]) })
  }
  show()
  return chain.subscribe(({ kind }) => kind === 'best' && show())
}

/** Submits an extrinsic, and says what becomes of it. */
const watch: Subscription['begin'] = (chain, push, [text]) => {
  const extrinsic = fromHex(text as string)
  const hash = toHex(hash256(extrinsic))
  const holds = (list: readonly Uint8Array[]) => list.some((one) => extrinsic.equals(one))
  let includedIn: string | undefined
  const end = chain.subscribe(({ kind, block }) => {
    if (kind === 'best' && holds(block.extrinsics)) {
      includedIn = block.hash
      push({ inBlock: block.hash })
    } else if (kind === 'final' && holds(block.extrinsics)) {
      if (includedIn !== block.hash) push({ inBlock: block.hash })
      push({ finalized: block.hash })
      end()
    }
  })
  try {
    push('ready')
    if (chain.pool.submit(extrinsic) !== hash) throw new Error('unreachable')
  } catch (error) {
    end()
    throw error
  }
  return end
}

const bestHeads = (name: string): Subscription => ({
  notification: name === 'AllHeads' ? 'chain_allHead' : 'chain_newHead',
  unsubscribe: `chain_unsubscribe${name}`,
  begin: heads('best'),
})

/** By the method that begins them. */
const subscriptions: Readonly<Record<string, Subscription>> = {
  chain_subscribeNewHead: bestHeads('NewHead'),
  chain_subscribeNewHeads: bestHeads('NewHeads'),
  chain_subscribeAllHeads: bestHeads('AllHeads'),
  chain_subscribeFinalizedHeads: {
    notification: 'chain_finalizedHead',
    unsubscribe: 'chain_unsubscribeFinalizedHeads',
    begin: heads('final'),
  },
  state_subscribeRuntimeVersion: {
    notification: 'state_runtimeVersion',
    unsubscribe: 'state_unsubscribeRuntimeVersion',
    begin: runtimeVersion,
  },
  state_subscribeStorage: {
    notification: 'state_storage',
    unsubscribe: 'state_unsubscribeStorage',
    begin: storage,
  },
  author_submitAndWatchExtrinsic: {
    notification: 'author_extrinsicUpdate',
    unsubscribe: 'author_unwatchExtrinsic',
    begin: watch,
  },
}

const most = 1_024

/** The older subscriptions, for one connection. */
export function createSubscriptions(chain: PolkadotChain, notify: Notify): Session {
  const running = new Map<string, () => void>()
  const methods: Record<string, Method> = {}
  let count = 0
  for (const [name, { notification, unsubscribe, begin }] of Object.entries(subscriptions)) {
    methods[name] = (...params: unknown[]) => {
      if (running.size >= most) throw new RpcError(-32_006, 'Too many subscriptions')
      const id = `sub-${++count}`
      running.set(
        id,
        begin(chain, (result) => notify(notification, id, result), params),
      )
      return id
    }
    methods[unsubscribe] = (id: unknown) => {
      running.get(String(id))?.()
      return running.delete(String(id))
    }
  }
  return {
    methods,
    close: () => {
      for (const end of running.values()) end()
      running.clear()
    },
  }
}
