import { useState } from 'preact/hooks'
import { useAccount } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { useChain } from '../app/use-chain.ts'
import { useLive, useLiveReload } from '../app/use-live.ts'
import { Deliveries, useDeliveries } from '../components/deliveries.tsx'
import { Empty, Facts, PageHeader, Panel, Skeleton } from '../components/layout.tsx'
import { ExplorerLink } from '../components/link.tsx'
import { NoChain } from '../components/no-chain.tsx'
import { Problem } from '../components/problem.tsx'
import { Amount, Id, Time } from '../components/text.tsx'
import { TransferAmount, TransferState } from '../components/transfers.tsx'
import { type Chain, chainId, chainTitle } from '../lib/chains.ts'
import { formatConstant, formatCount } from '../lib/format.ts'
import { type Transfer, transactionField, transactionOf, unitOf } from '../lib/records.ts'
import { pathTo } from '../lib/router.ts'
import { useResource } from '../lib/use-resource.ts'

/** Everything about the transfers of one transaction: confirmations as they arrive, and its notifications. */
export function Page({ params }: PageProps) {
  const { chain } = useChain(params.chain)
  if (!chain) return <NoChain title="Transfer" />
  return <Transaction key={params.transaction} chain={chain} hash={params.transaction ?? ''} />
}

function Transaction({ chain, hash }: { chain: Chain; hash: string }) {
  const { on } = useAccount()
  const [head, setHead] = useState(chain.block_number)
  const operations = on(chain)
  const loaded = useResource(async (signal) => {
    const request = { ...transactionField(chain, hash), page_size: 100 }
    const { transfers } = await operations.ListTransfers(request, { signal })
    return transfers as unknown as Transfer[]
  }, [])
  const deliveries = useDeliveries(chain, hash)
  useLive((event) => {
    if (event.type === 'head' && event.chain === chain.chain && event.network === chain.network)
      setHead(String(event.data.block_number))
  })
  useLiveReload(
    (event) =>
      event.type === 'delivery' ||
      ('transfers' in event.data && transactionOf(event.data) === hash),
    () => {
      loaded.reload()
      deliveries.reload()
    },
  )
  const transfers = loaded.data
  return (
    <>
      <PageHeader
        title="Transfer"
        about={<Id value={hash} label="transaction" whole />}
        actions={<ExplorerLink chain={chain} kind="tx" id={hash} />}
      />
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!transfers && loaded.loading && <Skeleton lines={8} />}
      {transfers?.length === 0 && (
        <Empty title="No tracked transfer has this hash.">
          <p>Only transfers of registered addresses are stored.</p>
        </Empty>
      )}
      {transfers && transfers.length > 0 && (
        <div class="stack">
          {transfers.map((transfer) => (
            <Movement
              key={`${transfer.transfer_id} ${transfer.wallet_id}`}
              chain={chain}
              transfer={transfer}
              head={head}
            />
          ))}
          <Deliveries chain={chain} list={deliveries} />
        </div>
      )}
    </>
  )
}

function Movement({
  chain,
  transfer,
  head,
}: {
  chain: Chain
  transfer: Transfer
  head: string | null
}) {
  const confirmations = confirmationsOf(transfer.block_number, head)
  const coin = unitOf(chain, undefined, undefined)
  return (
    <Panel
      title={formatConstant(transfer.direction ?? 'TRANSFER', 'TRANSFER_DIRECTION_')}
      actions={<TransferState transfer={transfer} />}
    >
      <Facts
        rows={[
          ['Amount', <TransferAmount key="amount" transfer={transfer} chain={chain} exact />],
          ['From', <Id key="from" value={transfer.from} whole label="sender" />],
          ['To', <Id key="to" value={transfer.to} whole label="receiver" />],
          [
            'Wallet',
            <Id
              key="wallet"
              value={transfer.wallet_id}
              to={pathTo('wallets', chainId(chain), transfer.wallet_id)}
              whole
            />,
          ],
          ['Chain', `${chainTitle(chain)}, ${chain.network}`],
          [
            'Block',
            <span key="block" class="mono">
              {formatCount(transfer.block_number)}
            </span>,
          ],
          confirmations !== undefined && [
            'Confirmations',
            <strong key="confirmations">{formatCount(confirmations)}</strong>,
          ],
          ['Time', <Time key="time" at={transfer.transfer_time} />],
          transfer.transaction_fee && [
            'Fee of the transaction',
            <Amount key="fee" value={transfer.transaction_fee} unit={coin} exact />,
          ],
          transfer.message && ['Message', transfer.message],
          transfer.verified === false && [
            'Verified',
            'no: one node reported this internal transfer, nothing confirmed it',
          ],
          ['Transfer', <Id key="id" value={transfer.transfer_id} label="transfer_id" />],
        ]}
      />
    </Panel>
  )
}

/** Blocks from that of the transfer to the newest, both counted; undefined where one is not known. */
function confirmationsOf(block: number | string | undefined, head: string | null) {
  if (block === undefined || head === null || !/^\d+$/.test(`${block}`) || !/^\d+$/.test(head))
    return undefined
  const count = BigInt(head) - BigInt(block) + 1n
  return count > 0n ? count : 0n
}
