import { useAccount } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { useChain } from '../app/use-chain.ts'
import { useLiveReload } from '../app/use-live.ts'
import { Action } from '../components/action.tsx'
import { Code } from '../components/code.tsx'
import { type Delivery, DeliveryState } from '../components/deliveries.tsx'
import { Empty, Facts, PageHeader, Panel, Skeleton } from '../components/layout.tsx'
import { NoChain } from '../components/no-chain.tsx'
import { Problem } from '../components/problem.tsx'
import { Badge, Id, Time } from '../components/text.tsx'
import { type Chain, chainId } from '../lib/chains.ts'
import { formatDuration, prettyJson, toJson } from '../lib/format.ts'
import { pathTo } from '../lib/router.ts'
import { useResource } from '../lib/use-resource.ts'

/** One notification: what was sent, and what the receiver answered each time. */
export function Page({ params }: PageProps) {
  const { chain } = useChain(params.chain)
  if (!chain) return <NoChain title="Delivery" />
  return (
    <OneDelivery
      key={params.delivery}
      chain={chain}
      webhook_id={params.webhook ?? ''}
      webhook_history_id={params.delivery ?? ''}
    />
  )
}

function OneDelivery(props: { chain: Chain; webhook_id: string; webhook_history_id: string }) {
  const { chain, webhook_id, webhook_history_id } = props
  const { on, may } = useAccount()
  const operations = on(chain)
  const loaded = useResource(async (signal) => {
    const [{ webhook_attempts }, delivery] = await Promise.all([
      operations.ListWebhookAttempts({ webhook_history_id }, { signal }),
      findDelivery(props, operations, signal),
    ])
    return { attempts: webhook_attempts, delivery }
  }, [])
  useLiveReload(
    (event) => event.type === 'delivery' && event.data.webhook_history_id === webhook_history_id,
    loaded.reload,
  )
  const data = loaded.data
  return (
    <>
      <PageHeader
        title="Delivery"
        about={<Id value={webhook_history_id} label="webhook_history_id" whole />}
        actions={
          may('RetryWebhookHistory') && (
            <Action
              tone="primary"
              run={() => operations.RetryWebhookHistory({ webhook_history_id })}
              onDone={loaded.reload}
            >
              Deliver again
            </Action>
          )
        }
      />
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!data && loaded.loading && <Skeleton lines={8} />}
      {data && (
        <div class="columns">
          <Panel title="Attempts">
            {data.attempts.length === 0 && (
              <Empty title="Not attempted yet.">
                <p>It waits for its confirmations, or for those before it.</p>
              </Empty>
            )}
            <ol class="timeline">
              {data.attempts.map((attempt) => {
                const isGood = (attempt.status_code ?? 0) >= 200 && (attempt.status_code ?? 0) < 300
                return (
                  <li key={attempt.attempt} data-tone={isGood ? 'good' : 'bad'}>
                    <p>
                      <strong>Attempt {attempt.attempt}</strong> <Time at={attempt.attempt_time} />{' '}
                      <Badge tone={isGood ? 'good' : 'bad'}>
                        {attempt.status_code === null ? 'no answer' : `HTTP ${attempt.status_code}`}
                      </Badge>{' '}
                      <span class="soft">{formatDuration(attempt.duration_ms)}</span>
                    </p>
                    {attempt.error && <p class="field-error">{attempt.error}</p>}
                    {attempt.response_body && (
                      <Code
                        text={prettyJson(attempt.response_body)}
                        label={`answer to attempt ${attempt.attempt}`}
                      />
                    )}
                  </li>
                )
              })}
            </ol>
          </Panel>
          <Panel title="Notification">
            {data.delivery ? (
              <>
                <Facts
                  rows={[
                    ['State', <DeliveryState key="state" status={data.delivery.webhook_status} />],
                    ['Type', data.delivery.notification_type],
                    [
                      'Webhook',
                      <Id
                        key="webhook"
                        value={webhook_id}
                        to={pathTo('webhooks', chainId(chain), webhook_id)}
                      />,
                    ],
                    [
                      'Delivered',
                      <Time key="time" at={data.delivery.delivery_time} none="not yet" />,
                    ],
                  ]}
                />
                <Code text={toJson(data.delivery.data)} label="data of the notification" />
              </>
            ) : (
              <Empty title="The history does not have it any more." />
            )}
          </Panel>
        </div>
      )}
    </>
  )
}

/** How many pages of the history are read for one notification. */
const searchedPages = 10

/** There is no operation for one notification: the newest pages of the webhook are searched. */
async function findDelivery(
  { webhook_id, webhook_history_id }: { webhook_id: string; webhook_history_id: string },
  operations: ReturnType<ReturnType<typeof useAccount>['on']>,
  signal: AbortSignal,
): Promise<Delivery | undefined> {
  let page_token = ''
  for (let page = 0; page < searchedPages; page++) {
    const request = { webhook_id, page_size: 100, ...(page_token && { page_token }) }
    const { webhook_histories, pagination } = await operations.ListWebhookHistories(request, {
      signal,
    })
    const found = webhook_histories.find((one) => one.webhook_history_id === webhook_history_id)
    if (found) return found
    page_token = pagination.next_page_token
    if (!page_token) return undefined
  }
  return undefined
}
