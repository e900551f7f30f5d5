import { type Chain, chainId } from '../lib/chains.ts'
import { formatConstant } from '../lib/format.ts'
import { type Transfer, transactionOf, unitOf } from '../lib/records.ts'
import { pathTo } from '../lib/router.ts'
import type { Column } from './table.tsx'
import { Amount, Badge, Id, Time } from './text.tsx'

const states: Readonly<Record<string, 'good' | 'bad' | 'warn'>> = {
  TRANSFER_STATE_SUCCESS: 'good',
  TRANSFER_STATE_PENDING: 'warn',
  TRANSFER_STATE_FAILED: 'bad',
  TRANSFER_STATE_REORGED: 'bad',
}

/** The state of a transfer, where its chain has one. */
export function TransferState({ transfer }: { transfer: Transfer }) {
  const { transfer_state: state } = transfer
  if (!state) return <Badge tone="good">Included</Badge>
  return <Badge tone={states[state] ?? 'plain'}>{formatConstant(state, 'TRANSFER_STATE_')}</Badge>
}

/** The amount of a transfer, signed by its direction. */
export function TransferAmount(props: { transfer: Transfer; chain: Chain; exact?: boolean }) {
  const { transfer, chain, exact } = props
  const unit = unitOf(chain, transfer.token_address, transfer.transfer_metadata)
  const sign = transfer.direction?.endsWith('INCOMING')
    ? '+'
    : transfer.direction?.endsWith('OUTGOING')
      ? '−'
      : ''
  return <Amount value={transfer.value} unit={unit} sign={sign} exact={exact ?? false} />
}

/** The other end of a transfer, seen from the wallet. */
function Counterparty({ transfer }: { transfer: Transfer }) {
  const isIncoming = transfer.direction?.endsWith('INCOMING')
  return (
    <>
      <span class="soft">{isIncoming ? 'from ' : 'to '}</span>
      <Id value={isIncoming ? transfer.from : transfer.to} label="address" />
    </>
  )
}

/** The columns of a list of transfers. */
export function transferColumns(chain: Chain): Column<Transfer>[] {
  return [
    { title: 'Time', cell: (transfer) => <Time at={transfer.transfer_time} /> },
    {
      title: 'Amount',
      align: 'end',
      cell: (transfer) => <TransferAmount transfer={transfer} chain={chain} />,
    },
    {
      title: 'Counterparty',
      hide: 'narrow',
      cell: (transfer) => <Counterparty transfer={transfer} />,
    },
    {
      title: 'Transaction',
      cell: (transfer) => (
        <Id
          value={transactionOf(transfer)}
          to={pathTo('transfers', chainId(chain), transactionOf(transfer))}
          label="transaction"
        />
      ),
    },
    {
      title: 'Block',
      align: 'end',
      hide: 'medium',
      cell: (transfer) => <span class="mono">{transfer.block_number ?? '–'}</span>,
    },
    { title: 'State', cell: (transfer) => <TransferState transfer={transfer} /> },
  ]
}
