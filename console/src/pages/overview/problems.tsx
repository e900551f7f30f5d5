import { useAccount } from '../../app/context.ts'
import { useLiveReload } from '../../app/use-live.ts'
import { Empty, Panel, Skeleton } from '../../components/layout.tsx'
import { Link } from '../../components/link.tsx'
import { Problem } from '../../components/problem.tsx'
import { Badge, Time } from '../../components/text.tsx'
import { type Chain, chainId, chainTitle, hasWallets } from '../../lib/chains.ts'
import { formatCount } from '../../lib/format.ts'
import { pathTo } from '../../lib/router.ts'
import { useResource } from '../../lib/use-resource.ts'

type Attention = {
  key: string
  tone: 'bad' | 'warn'
  title: string
  detail: string
  since: string | null
  cure: { title: string; to: string }
}

const kinds: Readonly<Record<string, string>> = {
  tracker_failing: 'tracking fails',
  tracker_stalled: 'tracking stands still',
  gap: 'blocks are missing',
}

/** More than a person reads at once. */
const shown = 8

/** What needs attention, in words, with the way to its cure. */
export function Problems() {
  const { client, chains, on } = useAccount()
  const loaded = useResource(async (signal) => {
    const [{ problems }, ...webhooks] = await Promise.all([
      client.admin.ListProblems({}, { signal }),
      ...chains.filter(hasWallets).map((chain) => failing(chain, on(chain), signal)),
    ])
    const open = problems
      .filter(({ resolve_time }) => resolve_time === null)
      .map(
        (problem): Attention => ({
          key: `${problem.kind} ${problem.chain} ${problem.network} ${problem.subject}`,
          tone: 'bad',
          title: `${problem.chain} ${problem.network}: ${kinds[problem.kind] ?? problem.kind}`,
          detail: problem.detail,
          since: problem.create_time,
          cure: { title: 'See the nodes', to: 'gateway/nodes' },
        }),
      )
    return [...open, ...webhooks.flat()]
  }, [])
  useLiveReload(({ type }) => type === 'problem', loaded.reload)
  const found = loaded.data
  if (found?.length === 0) return null
  return (
    <Panel title="Needs attention">
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!found && loaded.loading && <Skeleton lines={2} />}
      {!found && !loaded.loading && !loaded.error && <Empty title="Nothing." />}
      {found && (
        <ul class="timeline">
          {found.slice(0, shown).map(({ key, tone, title, detail, since, cure }) => (
            <li key={key} data-tone={tone}>
              <strong>{title}</strong> {since && <Time at={since} />}
              {tone === 'warn' && <Badge tone="warn">webhook</Badge>}
              <p class="soft">{detail}</p>
              <Link to={cure.to}>{cure.title}</Link>
            </li>
          ))}
          {found.length > shown && <li>and {formatCount(found.length - shown)} more</li>}
        </ul>
      )}
    </Panel>
  )
}

const disabledByHand = 'DisableWebhook was called.'

/** Webhooks that the service disabled, or that fail more often than not. */
async function failing(
  chain: Chain,
  operations: ReturnType<ReturnType<typeof useAccount>['on']>,
  signal: AbortSignal,
): Promise<Attention[]> {
  const { webhooks } = await operations.ListWebhooks({ page_size: 100 }, { signal })
  return webhooks
    .filter(({ enabled, success_rate, disable_reason }) =>
      // What a person disabled needs no attention.
      enabled ? success_rate !== null && success_rate < 0.5 : disable_reason !== disabledByHand,
    )
    .map(({ webhook_id, webhook_endpoint, enabled, disable_reason, last_error }) => ({
      key: webhook_id,
      tone: 'warn' as const,
      title: `${chainTitle(chain)}: ${webhook_endpoint}`,
      detail: enabled ? `Most deliveries fail. ${last_error}` : `Disabled. ${disable_reason}`,
      since: null,
      cure: { title: 'See its deliveries', to: pathTo('webhooks', chainId(chain), webhook_id) },
    }))
}
