import { useAccount } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { useChain } from '../app/use-chain.ts'
import { useLiveReload } from '../app/use-live.ts'
import { Action } from '../components/action.tsx'
import { Attempt } from '../components/attempt.tsx'
import { Code } from '../components/code.tsx'
import { type Delivery, DeliveryState } from '../components/deliveries.tsx'
import { Empty, Facts, PageHeader, Panel, Skeleton } from '../components/layout.tsx'
import { NoChain } from '../components/no-chain.tsx'
import { Problem } from '../components/problem.tsx'
import { Id, Time } from '../components/text.tsx'
import { type Chain, chainId } from '../lib/chains.ts'
import { formatConstant, toJson } from '../lib/format.ts'
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
  const loaded = useResource(
    (signal) => operations.ListWebhookAttempts({ webhook_history_id }, { signal }),
    [],
  )
  useLiveReload(
    (event) => event.type === 'delivery' && event.data.webhook_history_id === webhook_history_id,
    loaded.reload,
  )
  const attempts = loaded.data?.webhook_attempts
  const delivery: Delivery | undefined = loaded.data?.webhook_history
  return (
    <>
      <PageHeader
        title="Delivery"
        about={<Id value={webhook_history_id} label="webhook_history_id" whole />}
        actions={
          may('RetryWebhookHistory', chain) && (
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
      {!delivery && loaded.loading && <Skeleton lines={8} />}
      {delivery && attempts && (
        <div class="columns">
          <Panel title="Attempts">
            {attempts.length === 0 && (
              <Empty title="Not attempted yet.">
                <p>It waits for its confirmations, or for those before it.</p>
              </Empty>
            )}
            <ol class="timeline">
              {attempts.map((attempt) => (
                <Attempt key={attempt.attempt} attempt={attempt} sent={bodyOf(delivery)} />
              ))}
            </ol>
          </Panel>
          <Panel title="Notification">
            <Facts
              rows={[
                ['State', <DeliveryState key="state" delivery={delivery} />],
                ['Type', formatConstant(delivery.notification_type, 'NOTIFICATION_TYPE_')],
                [
                  'Webhook',
                  <Id
                    key="webhook"
                    value={webhook_id}
                    to={pathTo('webhooks', chainId(chain), webhook_id)}
                  />,
                ],
                ['Created', <Time key="created" at={delivery.create_time} />],
                ['Last attempt', <Time key="time" at={delivery.delivery_time} none="not yet" />],
              ]}
            />
            <Code text={toJson(delivery.data)} label="data of the notification" />
          </Panel>
        </div>
      )}
    </>
  )
}

/** What a receiver gets. */
const bodyOf = (delivery: Delivery): string =>
  toJson({
    webhook_id: delivery.webhook_id,
    webhook_history_id: delivery.webhook_history_id,
    notification_type: delivery.notification_type,
    create_time: delivery.create_time,
    data: delivery.data,
  })
