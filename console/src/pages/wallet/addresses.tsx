import { useAccount } from '../../app/context.ts'
import { Action } from '../../components/action.tsx'
import { Empty, Panel } from '../../components/layout.tsx'
import { ExplorerLink, Link } from '../../components/link.tsx'
import { PagedTable } from '../../components/table.tsx'
import { Id, Time } from '../../components/text.tsx'
import { type Chain, chainId } from '../../lib/chains.ts'
import { pathTo } from '../../lib/router.ts'
import { usePages } from '../../lib/use-resource.ts'

/** The addresses of a wallet, any number of them. */
export function Addresses({ chain, wallet_id }: { chain: Chain; wallet_id: string }) {
  const { on, may } = useAccount()
  const operations = on(chain)
  const list = usePages(async (page_token, signal) => {
    const request = { wallet_id, page_size: 100, ...(page_token && { page_token }) }
    const { addresses, pagination } = await operations.ListAddresses(request, { signal })
    return { items: addresses, next: pagination.next_page_token }
  }, [])
  return (
    <Panel flush title="Addresses">
      <PagedTable
        label="Addresses"
        list={list}
        keyOf={({ address }) => address}
        columns={[
          { title: 'Address', cell: ({ address }) => <Id value={address} label="address" whole /> },
          { title: 'Added', hide: 'narrow', cell: ({ create_time }) => <Time at={create_time} /> },
          {
            title: '',
            align: 'end',
            cell: ({ address }) => (
              <span class="actions">
                <ExplorerLink chain={chain} kind="address" id={address} />
                <Link
                  to={`${pathTo('wallets', chainId(chain), wallet_id)}?address=${encodeURIComponent(address)}`}
                >
                  Transfers
                </Link>
                {may('RemoveAddress', chain) && (
                  <Action
                    small
                    tone="danger"
                    confirm={`Stop tracking ${address}? Its history stays.`}
                    run={() => operations.RemoveAddress({ wallet_id, address })}
                    onDone={list.reload}
                  >
                    Remove
                  </Action>
                )}
              </span>
            ),
          },
        ]}
        empty={
          <Empty title="The wallet has no address.">
            <p>Add one, and its transfers and balances are tracked from then on.</p>
          </Empty>
        }
      />
    </Panel>
  )
}
