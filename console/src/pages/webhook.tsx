import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { useChain } from '../app/use-chain.ts'
import { useLiveReload } from '../app/use-live.ts'
import { Action } from '../components/action.tsx'
import { deliveryColumns } from '../components/deliveries.tsx'
import { Empty, Facts, PageHeader, Panel, Skeleton, Stat } from '../components/layout.tsx'
import { NoChain } from '../components/no-chain.tsx'
import { NoPage, NotAllowed } from '../components/no-page.tsx'
import { OperationDialog } from '../components/operation-form.tsx'
import { Problem } from '../components/problem.tsx'
import { PagedTable } from '../components/table.tsx'
import { LinkTabs } from '../components/tabs.tsx'
import { Badge, Id, Time } from '../components/text.tsx'
import { type Chain, chainId } from '../lib/chains.ts'
import { formatCount, formatPercent } from '../lib/format.ts'
import { pathTo } from '../lib/router.ts'
import { usePages, useResource } from '../lib/use-resource.ts'
import { Latency } from './webhook/latency.tsx'
import { Receiver } from './webhook/receiver.tsx'
import { Headers } from './webhook/webhook-headers.tsx'

/** The service counts the failed notifications of a webhook so far. */
const countedFailures = 1_000

/** One webhook: its state, deliveries, headers and receiver. */
export function Page({ params }: PageProps) {
  const { chain } = useChain(params.chain)
  if (!chain) return <NoChain title="Webhook" />
  return (
    <Webhook
      key={params.webhook}
      chain={chain}
      webhook_id={params.webhook ?? ''}
      tab={params.tab ?? ''}
    />
  )
}

function Webhook({ chain, webhook_id, tab }: { chain: Chain; webhook_id: string; tab: string }) {
  const { on, may } = useAccount()
  const { router } = useApp()
  const [editing, setEditing] = useState(false)
  const operations = on(chain)
  const loaded = useResource(async (signal) => {
    const [found] = (await operations.ListWebhooks({ webhook_id }, { signal })).webhooks
    if (!found) throw new Error('There is no webhook of this id; it may have been removed.')
    return found
  }, [])
  const list = usePages(async (page_token, signal) => {
    const request = { webhook_id, page_size: 100, ...(page_token && { page_token }) }
    const { webhook_histories, pagination } = await operations.ListWebhookHistories(request, {
      signal,
    })
    return { items: webhook_histories, next: pagination.next_page_token }
  }, [])
  const reload = () => {
    loaded.reload()
    list.reload()
  }
  useLiveReload(
    (event) => event.type === 'delivery' && event.data.webhook_id === webhook_id,
    reload,
  )
  const webhook = loaded.data
  // Of all pages, not only of those that are loaded.
  const failed = webhook?.failed_count ?? 0
  const tabs = [
    ['', 'Deliveries'],
    ...(may('ListWebhookHeaders', chain) ? [['headers', 'Headers']] : []),
    ['receiver', 'Receiver'],
  ] as [string, string][]
  return (
    <>
      <PageHeader
        title="Webhook"
        about={
          <>
            {webhook && <span class="mono">{webhook.webhook_endpoint}</span>}{' '}
            <Id value={webhook_id} label="webhook_id" />
          </>
        }
        actions={
          webhook && (
            <>
              {may('SendTestWebhook', chain) && (
                <Action
                  tone="primary"
                  run={() => operations.SendTestWebhook({ webhook_id })}
                  onDone={reload}
                >
                  Send a test
                </Action>
              )}
              {may('RetryWebhookHistory', chain) && webhook.enabled && failed > 0 && (
                <Action run={() => operations.RetryWebhookHistory({ webhook_id })} onDone={reload}>
                  Retry all failed ({formatCount(failed)}
                  {failed >= countedFailures && ' or more'})
                </Action>
              )}
              {may('UpdateWebhook', chain) && (
                <button type="button" class="button" onClick={() => setEditing(true)}>
                  Edit
                </button>
              )}
              {webhook.enabled
                ? may('DisableWebhook', chain) && (
                    <Action run={() => operations.DisableWebhook({ webhook_id })} onDone={reload}>
                      Disable
                    </Action>
                  )
                : may('EnableWebhook', chain) && (
                    <Action
                      tone="primary"
                      run={() => operations.EnableWebhook({ webhook_id })}
                      onDone={reload}
                    >
                      Enable
                    </Action>
                  )}
              {may('RemoveWebhook', chain) && (
                <Action
                  tone="danger"
                  confirm="Remove this webhook? Its history stays, and nothing more is sent."
                  run={() => operations.RemoveWebhook({ webhook_id })}
                  onDone={() => router.go(pathTo('webhooks', chainId(chain)))}
                >
                  Remove
                </Action>
              )}
            </>
          )
        }
      />
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!webhook && loaded.loading && <Skeleton lines={6} />}
      {webhook && (
        <div class="stack">
          <div class="stats">
            <Stat
              label="State"
              value={webhook.enabled ? 'Enabled' : 'Disabled'}
              note={webhook.disable_reason}
              tone={webhook.enabled ? 'good' : 'bad'}
            />
            <Stat
              label="Success"
              value={formatPercent(webhook.success_rate)}
              note="of recent deliveries"
            />
            <Stat label="Confirmations" value={webhook.confirmation} note="before it is notified" />
            <Stat label="Created" value={<Time at={webhook.create_time} />} />
          </div>
          {webhook.last_error && (
            <Panel title="Last error">
              <Facts
                rows={[
                  [
                    'The receiver',
                    <Badge key="badge" tone="bad">
                      {webhook.last_error}
                    </Badge>,
                  ],
                ]}
              />
            </Panel>
          )}
          <LinkTabs
            label="Parts of the webhook"
            tabs={tabs.map(([name, title]) => ({
              title,
              to: pathTo(...['webhooks', chainId(chain), webhook_id, name].filter(Boolean)),
              isCurrent: name === tab,
            }))}
          />
          {tab === '' && (
            <>
              {list.items.length > 0 && <Latency chain={chain} deliveries={list.items} />}
              <Panel flush title="Deliveries">
                <PagedTable
                  label="Deliveries"
                  list={list}
                  keyOf={({ webhook_history_id }) => webhook_history_id}
                  columns={deliveryColumns(chain)}
                  empty={
                    <Empty title="Nothing was sent yet.">
                      <p>A test shows whether the receiver accepts deliveries.</p>
                    </Empty>
                  }
                />
              </Panel>
            </>
          )}
          {tab === 'headers' &&
            (may('ListWebhookHeaders', chain) ? (
              <Headers chain={chain} webhook_id={webhook_id} />
            ) : (
              <NotAllowed operation="ListWebhookHeaders" />
            ))}
          {!['', 'headers', 'receiver'].includes(tab) && <NoPage />}
          {tab === 'receiver' && <Receiver chain={chain} webhook_id={webhook_id} />}
        </div>
      )}
      {editing && webhook && (
        <OperationDialog
          title="Edit the webhook"
          submit="Save"
          on={chain}
          operation="UpdateWebhook"
          known={{
            webhook_id,
            webhook_endpoint: webhook.webhook_endpoint,
            confirmation: webhook.confirmation,
            events: webhook.events,
          }}
          fixed={['webhook_id']}
          run={async (request) => {
            await operations.UpdateWebhook(request as { webhook_id: string })
            setEditing(false)
            reload()
          }}
          onClose={() => setEditing(false)}
        />
      )}
    </>
  )
}
