import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import { useLive } from '../app/use-live.ts'
import { Empty, PageHeader, Panel } from '../components/layout.tsx'
import { Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { Badge, Id, Time } from '../components/text.tsx'
import { chainId, coinOf, hasWallets } from '../lib/chains.ts'
import { devCall } from '../lib/dev-call.ts'
import { parseUnits, toJson } from '../lib/format.ts'
import type { LiveEvent } from '../lib/live.ts'
import { pathTo } from '../lib/router.ts'
import { useResource } from '../lib/use-resource.ts'

const maxEvents = 40

/** The local chains of the embedded mode: coin for an address, a reorganization, and what happens then. */
export function Page() {
  return (
    <>
      <PageHeader
        title="Local chains"
        about="Chains of the embedded mode. Nothing here has value; other installations refuse these calls."
      />
      <div class="columns">
        <div class="stack">
          <Faucet />
          <Reorganize />
        </div>
        <Events />
      </div>
    </>
  )
}

function Faucet() {
  const { chains, on } = useAccount()
  const { baseUrl } = useApp()
  const tracked = chains.filter((chain) => hasWallets(chain) && chain.is_default_network)
  const [id, setId] = useState(() => tracked[0] && chainId(tracked[0]))
  const [error, setError] = useState<unknown>()
  const [hash, setHash] = useState<string | undefined>()
  const [busy, setBusy] = useState(false)
  const chain = tracked.find((one) => chainId(one) === id)
  // The address of a wallet: what is sent to another one is not seen.
  const suggested = useResource(
    async (signal) => {
      if (!chain) return ''
      const { wallets } = await on(chain).ListWallets({ page_size: 1 }, { signal })
      return wallets[0]?.addresses[0] ?? ''
    },
    [id],
  )
  const submit = async (event: Event) => {
    event.preventDefault()
    if (!chain) return
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const amount = parseUnits(String(form.get('amount') ?? ''), coinOf(chain).decimals)
    setError(undefined)
    setHash(undefined)
    if (amount === undefined || amount === 0n) {
      setError(new Error(`The amount is a number with at most ${coinOf(chain).decimals} decimals.`))
      return
    }
    setBusy(true)
    try {
      const address = String(form.get('address') ?? '').trim()
      const answer = await devCall(baseUrl, 'faucet', {
        chain: chain.chain,
        address,
        amount: `${amount}`,
      })
      setHash(String(answer.transaction_hash))
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Panel title="Faucet">
      <form class="form" onSubmit={submit}>
        <div class="field">
          <label class="plain" for="faucet-chain">
            Chain
          </label>
          <select
            id="faucet-chain"
            value={id}
            onChange={(event) => setId(event.currentTarget.value)}
          >
            {tracked.map((one) => (
              <option key={chainId(one)} value={chainId(one)}>
                {one.chain}
              </option>
            ))}
          </select>
        </div>
        <div class="field">
          <label class="plain" for="faucet-address">
            Address
          </label>
          <input
            key={suggested.data}
            defaultValue={suggested.data}
            id="faucet-address"
            name="address"
            required
            spellcheck={false}
            autocomplete="off"
          />
        </div>
        <div class="field">
          <label class="plain" for="faucet-amount">
            Amount{chain && ` (${coinOf(chain).symbol})`}
          </label>
          <input id="faucet-amount" name="amount" inputMode="decimal" defaultValue="1" required />
        </div>
        <Problem error={error} />
        <div class="actions">
          <button type="submit" class="button primary" disabled={busy}>
            Send
          </button>
          {hash && chain && (
            <span role="status">
              Sent: <Id value={hash} to={pathTo('transfers', chainId(chain), hash)} />
            </span>
          )}
        </div>
      </form>
    </Panel>
  )
}

function Reorganize() {
  const { baseUrl } = useApp()
  const [error, setError] = useState<unknown>()
  const [done, setDone] = useState<string | undefined>()
  const submit = async (event: Event) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    setError(undefined)
    setDone(undefined)
    try {
      const depth = Number(form.get('depth'))
      await devCall(baseUrl, 'reorg', { depth })
      setDone(`The newest ${depth} blocks of c were replaced.`)
    } catch (failure) {
      setError(failure)
    }
  }
  return (
    <Panel title="Reorganize">
      <form class="form" onSubmit={submit}>
        <p class="soft">
          Replaces the newest blocks of chain c by others. Transfers in them are retracted, and
          webhooks are notified.
        </p>
        <div class="field">
          <label class="plain" for="depth">
            Blocks
          </label>
          <input id="depth" name="depth" inputMode="numeric" defaultValue="2" required />
        </div>
        <Problem error={error} />
        <div class="actions">
          <button type="submit" class="button">
            Reorganize
          </button>
          {done && <span role="status">{done}</span>}
        </div>
      </form>
    </Panel>
  )
}

const tones: Readonly<Record<string, 'good' | 'bad' | 'warn' | 'sea'>> = {
  transfer: 'sea',
  confirmation: 'good',
  retraction: 'bad',
  reorganization: 'warn',
  delivery: 'good',
  problem: 'bad',
}

function Events() {
  const [events, setEvents] = useState<readonly { id: number; event: LiveEvent }[]>([])
  const [count, setCount] = useState(0)
  useLive((event) => {
    if (event.type === 'head' || event.type === 'ready') return
    setCount((last) => last + 1)
    setEvents((last) => [{ id: (last[0]?.id ?? 0) + 1, event }, ...last].slice(0, maxEvents))
  })
  return (
    <Panel title="What happens" actions={<Badge>{count}</Badge>}>
      {events.length === 0 && (
        <Empty title="Nothing yet.">
          <p>
            Send coin to an address of a <Link to="wallets">wallet</Link>, and see transfer and
            delivery arrive.
          </p>
        </Empty>
      )}
      <ol class="timeline" aria-live="off">
        {events.map(({ id, event }) => (
          <li key={id}>
            <p class="actions">
              <Badge tone={tones[event.type] ?? 'plain'}>{event.type}</Badge>
              <span>{event.chain}</span>
              <Time at={event.create_time} />
            </p>
            <details>
              <summary class="soft">Data</summary>
              <pre class="event-data">{toJson(event.data)}</pre>
            </details>
          </li>
        ))}
      </ol>
    </Panel>
  )
}
