import { useAccount } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { useChain } from '../app/use-chain.ts'
import { useLiveReload } from '../app/use-live.ts'
import { Action } from '../components/action.tsx'
import { Facts, PageHeader, Panel, Skeleton } from '../components/layout.tsx'
import { ExplorerLink } from '../components/link.tsx'
import { NoChain } from '../components/no-chain.tsx'
import { Problem } from '../components/problem.tsx'
import { StateMachine } from '../components/state-machine.tsx'
import { Amount, Badge, Id } from '../components/text.tsx'
import { type Chain, chainId } from '../lib/chains.ts'
import { unitOf } from '../lib/records.ts'
import { pathTo } from '../lib/router.ts'
import { useResource } from '../lib/use-resource.ts'
import { Replace } from './transaction/replace.tsx'
import { Signing } from './transaction/signing.tsx'

/** One managed transaction: where it is, and what can be done with it. */
export function Page({ params }: PageProps) {
  const { chain } = useChain(params.chain)
  if (!chain) return <NoChain title="Transaction" />
  return (
    <Transaction key={params.transaction} chain={chain} transaction_id={params.transaction ?? ''} />
  )
}

function Transaction({ chain, transaction_id }: { chain: Chain; transaction_id: string }) {
  const { on, may } = useAccount()
  const operations = on(chain)
  const loaded = useResource(
    (signal) => operations.GetTransaction({ transaction_id }, { signal }),
    [],
  )
  useLiveReload(({ type }) => type === 'transaction' || type === 'head', loaded.reload)
  const transaction = loaded.data?.transaction
  if (!transaction)
    return (
      <>
        <PageHeader title="Transaction" about={<Id value={transaction_id} whole />} />
        {loaded.loading ? (
          <Skeleton lines={8} />
        ) : (
          <Problem error={loaded.error} onRetry={loaded.reload} />
        )}
      </>
    )
  const state = transaction.transaction_state.replace('TRANSACTION_STATE_', '')
  const coin = unitOf(chain, undefined, undefined)
  return (
    <>
      <PageHeader
        title="Transaction"
        about={<Id value={transaction_id} label="transaction_id" whole />}
        actions={
          <>
            {state === 'SIGNED' && may('SendTransaction', chain) && (
              <Action
                tone="primary"
                run={() => operations.SendTransaction({ transaction_id })}
                onDone={loaded.reload}
              >
                Send
              </Action>
            )}
            {['SENDING', 'SENT'].includes(state) && may('CreateTransaction', chain) && (
              <Replace chain={chain} transaction={transaction} />
            )}
            {transaction.transaction_hash && (
              <ExplorerLink chain={chain} kind="tx" id={transaction.transaction_hash} />
            )}
            {['CREATED', 'SIGNED'].includes(state) && may('CancelTransaction', chain) && (
              <Action
                tone="danger"
                confirm="Cancel this transaction? It was never sent; its nonce is free again."
                run={() => operations.CancelTransaction({ transaction_id })}
                onDone={loaded.reload}
              >
                Cancel it
              </Action>
            )}
          </>
        }
      />
      <div class="stack">
        <Panel title="State">
          <StateMachine state={transaction.transaction_state} />
        </Panel>
        {transaction.warnings.length > 0 && (
          <div class="notice">
            {transaction.warnings.map((warning) => (
              <p key={warning}>{warning}</p>
            ))}
          </div>
        )}
        {['CREATED', 'SIGNED'].includes(state) && may('SubmitTransactionSignature', chain) && (
          <Signing
            key={state}
            transaction={transaction}
            messageToSign={() =>
              operations
                .GetTransactionMessageToSign({ transaction_id })
                .then((answer) => answer.transaction_message_to_sign)
            }
            submit={(signature) =>
              operations.SubmitTransactionSignature({ transaction_id, signature })
            }
            onDone={loaded.reload}
          />
        )}
        <Panel title="Details">
          <Facts
            rows={[
              ['Amount', <Amount key="amount" value={transaction.value} unit={coin} exact />],
              ['From', <Id key="from" value={transaction.from} whole label="sender" />],
              ['To', <Id key="to" value={transaction.to} whole label="receiver" />],
              [
                'Hash',
                transaction.transaction_hash ? (
                  <Id
                    key="hash"
                    value={transaction.transaction_hash}
                    to={pathTo('transfers', chainId(chain), transaction.transaction_hash)}
                    whole
                  />
                ) : (
                  'known when it is signed'
                ),
              ],
              ['Nonce', transaction.nonce],
              ['Gas', `${transaction.gas} at most`],
              ['Gas price', `${transaction.gas_price} of the smallest unit`],
              transaction.data !== '0x' &&
                transaction.data && ['Data', <code key="data">{transaction.data}</code>],
              transaction.last_error && [
                'The nodes said',
                <Badge key="error" tone="bad">
                  {transaction.last_error}
                </Badge>,
              ],
              transaction.replaced_by && [
                'Replaced by',
                <Id
                  key="replaced"
                  value={transaction.replaced_by}
                  to={pathTo('transfers', chainId(chain), transaction.replaced_by)}
                  whole
                />,
              ],
            ]}
          />
        </Panel>
      </div>
    </>
  )
}
