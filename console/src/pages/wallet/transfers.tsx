import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../../app/context.ts'
import { useLive } from '../../app/use-live.ts'
import { ExportButtons } from '../../components/export-buttons.tsx'
import { Empty, Panel } from '../../components/layout.tsx'
import { PagedTable } from '../../components/table.tsx'
import { transferColumns } from '../../components/transfers.tsx'
import { type Chain, chainId, isEvm } from '../../lib/chains.ts'
import type { Transfer } from '../../lib/records.ts'
import { usePages } from '../../lib/use-resource.ts'

const maxFresh = 500

/** The transfers of a wallet, live, with filters by address and time. */
export function Transfers({ chain, wallet_id }: { chain: Chain; wallet_id: string }) {
  const { on } = useAccount()
  const { router } = useApp()
  const { query } = router.place.value
  const given = query.get('address') ?? ''
  // Wallets and explorers show addresses of EVM chains with capitals, as a checksum; the service has none.
  const address = isEvm(chain) ? given.toLowerCase() : given
  const day = query.get('day') ?? ''
  const [fresh, setFresh] = useState<readonly Transfer[]>([])
  const load = async (page_token: string | undefined, signal?: AbortSignal) => {
    const start = day ? Date.parse(`${day}T00:00:00Z`) / 1000 : undefined
    const request = {
      wallet_id,
      page_size: 100,
      ...(address && { address }),
      ...(start && { start_time: start, end_time: start + 86_400 }),
      ...(page_token && { page_token }),
    }
    const { transfers, pagination } = await on(chain).ListTransfers(request, signal && { signal })
    return {
      items: transfers as unknown as readonly Transfer[],
      next: pagination.next_page_token,
    }
  }
  const list = usePages(load, [address, day])
  useLive((event) => {
    if (event.chain !== chain.chain || event.network !== chain.network) return
    if (event.type !== 'transfer' && event.type !== 'confirmation' && event.type !== 'retraction')
      return
    const arrived = (event.data.transfers as unknown as Transfer[]).filter(
      (transfer) => transfer.wallet_id === wallet_id,
    )
    if (arrived.length === 0) return
    setFresh((last) => {
      const keys = new Set(arrived.map(({ transfer_id }) => transfer_id))
      return [...arrived, ...last.filter(({ transfer_id }) => !keys.has(transfer_id))].slice(
        0,
        maxFresh,
      )
    })
  })
  // What arrived before the filter was set, or while another one was, is filtered as well.
  const shown = fresh.filter(
    ({ from, to }) => !day && (!address || from === address || to === address),
  )
  const freshIds = new Set(shown.map(({ transfer_id }) => transfer_id))
  return (
    <Panel
      flush
      title="Transfers"
      actions={<ExportButtons name={`transfers-${chainId(chain)}-${wallet_id}`} load={load} />}
    >
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Address
          <input
            value={address}
            spellcheck={false}
            placeholder="any"
            onChange={(event) => router.setQuery({ address: event.currentTarget.value.trim() })}
          />
        </label>
        <label>
          Day (UTC)
          <input
            type="date"
            value={day}
            onChange={(event) => router.setQuery({ day: event.currentTarget.value })}
          />
        </label>
      </form>
      <PagedTable
        label="Transfers"
        list={list}
        fresh={shown}
        keyOf={({ transfer_id }) => transfer_id}
        isNew={({ transfer_id }) => freshIds.has(transfer_id)}
        columns={transferColumns(chain)}
        empty={
          <Empty title="No transfer here.">
            <p>Transfers of the wallet's addresses appear as their blocks are tracked.</p>
          </Empty>
        }
      />
    </Panel>
  )
}
