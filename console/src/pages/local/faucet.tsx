import { checksumProblem, lowerChecksum } from '@portolan/client'
import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../../app/context.ts'
import { Panel } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { Id } from '../../components/text.tsx'
import { chainId, coinOf, hasWallets } from '../../lib/chains.ts'
import { devCall } from '../../lib/dev-call.ts'
import { parseUnits } from '../../lib/format.ts'
import { pathTo } from '../../lib/router.ts'
import { useResource } from '../../lib/use-resource.ts'
import { useForm } from '../../lib/use-task.ts'

/** Sends coin of a local chain to an address. */
export function Faucet() {
  const { chains, on } = useAccount()
  const { baseUrl } = useApp()
  const tracked = chains.filter((chain) => hasWallets(chain) && chain.is_default_network)
  const [id, setId] = useState(() => tracked[0] && chainId(tracked[0]))
  const [hash, setHash] = useState<string | undefined>()
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
  const { busy, error, submit } = useForm(async (field) => {
    if (!chain) return
    setHash(undefined)
    const { decimals } = coinOf(chain)
    const amount = parseUnits(field('amount'), decimals)
    if (!amount) throw new Error(`The amount is a number with at most ${decimals} decimals.`)
    const isEvm = chain.kind === 'evm'
    const problem = isEvm ? checksumProblem(field('address')) : undefined
    if (problem !== undefined) throw new Error(problem)
    const address = isEvm ? lowerChecksum(field('address')) : field('address')
    const answer = await devCall(baseUrl, 'faucet', {
      ...{ chain: chain.chain, address, amount: `${amount}` },
    })
    setHash(String(answer.transaction_hash))
  })
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
