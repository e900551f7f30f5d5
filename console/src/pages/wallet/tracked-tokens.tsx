import type { Client, ItemOf } from '@portolan/client'
import { useAccount } from '../../app/context.ts'
import { Action } from '../../components/action.tsx'
import { Empty, Panel, Skeleton } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { Table } from '../../components/table.tsx'
import { Id } from '../../components/text.tsx'
import type { Chain } from '../../lib/chains.ts'
import { useResource } from '../../lib/use-resource.ts'

type Metadata = ItemOf<Awaited<ReturnType<Client['c']['ListContracts']>>>['contract_metadata']

/** The token contracts that the organization tracks on an EVM network: other tokens have neither transfers nor balances. */
export function TrackedTokens({ chain }: { chain: Chain }) {
  const { on, may } = useAccount()
  const operations = on(chain)
  const loaded = useResource((signal) => operations.ListContracts({}, { signal }), [])
  const rows = loaded.data?.contracts
  return (
    <Panel flush title="Tracked tokens">
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!rows && loaded.loading && <Skeleton />}
      {rows?.length === 0 && (
        <Empty title="No token is tracked on this network.">
          <p>Track one, and its transfers and balances are stored for all your wallets.</p>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <Table
          label="Tracked tokens"
          rows={rows}
          keyOf={({ contract_address }) => contract_address}
          columns={[
            {
              title: 'Token',
              cell: ({ contract_metadata }) => (
                <span class="cell-text">{nameOf(contract_metadata)}</span>
              ),
            },
            {
              title: 'Type',
              // As the standards are written.
              cell: ({ contract_type }) => contract_type.replace('CONTRACT_TYPE_', ''),
            },
            {
              title: 'Contract',
              hide: 'narrow',
              cell: ({ contract_address }) => <Id value={contract_address} label="contract" />,
            },
            {
              title: '',
              align: 'end',
              cell: ({ contract_address }) =>
                may('RemoveContract', chain) && (
                  <Action
                    small
                    tone="danger"
                    confirm="Stop tracking this token in all wallets? Its balances go, its transfers stay."
                    run={() => operations.RemoveContract({ contract_address })}
                    onDone={loaded.reload}
                  >
                    Remove
                  </Action>
                ),
            },
          ]}
        />
      )}
    </Panel>
  )
}

/** What the contract calls itself; one without metadata has only its address. */
function nameOf(metadata: Metadata): string {
  const token = metadata?.erc20 ?? metadata?.erc721 ?? metadata?.erc1155
  return (token && [token.name, token.symbol].filter(Boolean).join(', ')) || 'no name'
}
