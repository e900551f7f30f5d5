import { guides } from 'virtual:guide'
import { useApp } from '../app/context.ts'
import { PageHeader, Panel } from '../components/layout.tsx'
import { DocumentLink, Link } from '../components/link.tsx'
import type { OperationDoc } from '../lib/reference.ts'
import { pathTo } from '../lib/router.ts'

/** Where to begin. */
export function DocsStart({ operations }: { operations: readonly OperationDoc[] }) {
  const { basePath } = useApp()
  const groups = Map.groupBy(operations, ({ tag }) => tag)
  return (
    <>
      <PageHeader
        title="Documentation"
        about={
          <>
            Every operation is <code>POST /v1/{'{service}/{Operation}'}</code> with a JSON object as
            its body, signed with an API key.
          </>
        }
      />
      <div class="stack">
        <div class="docs-cards">
          {guides
            .filter(({ name }) => firstRead.has(name))
            .map(({ name, title }) => (
              <Link key={name} to={`docs/guide/${name}`} class="docs-card">
                <strong>{title}</strong>
                <span class="soft">{firstRead.get(name)}</span>
              </Link>
            ))}
        </div>
        {[...groups].map(([tag, mine]) => (
          <Panel key={tag} title={tag}>
            <ul class="docs-operations">
              {mine.map(({ key, chain, name, summary }) => (
                <li key={key}>
                  <Link to={pathTo('docs', 'api', chain, name)}>
                    <code>{name}</code>
                  </Link>{' '}
                  <span class="soft">{summary}</span>
                </li>
              ))}
            </ul>
          </Panel>
        ))}
        <p class="soft">
          <DocumentLink href={`${basePath}/openapi.json`}>OpenAPI document</DocumentLink> ·{' '}
          <DocumentLink href={`${basePath}/docs/errors`}>All errors</DocumentLink> ·{' '}
          <DocumentLink href={`${basePath}/status`}>Status</DocumentLink>
        </p>
      </div>
    </>
  )
}

const firstRead: ReadonlyMap<string, string> = new Map([
  ['quick-start', 'From nothing to a tracked deposit'],
  ['signing', 'Sign requests in any language'],
  ['webhooks', 'What is delivered, and how to check it'],
  ['events', 'The same over one open connection'],
  ['gateway', 'JSON-RPC and WebSocket to the nodes'],
  ['production', 'Databases, proxies, limits, upgrades'],
])
