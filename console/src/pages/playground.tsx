import { useMemo, useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { Code } from '../components/code.tsx'
import { SchemaForm } from '../components/form.tsx'
import { Empty, PageHeader, Panel, Skeleton } from '../components/layout.tsx'
import { DocumentLink, Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { Snippets } from '../components/snippets.tsx'
import { Badge } from '../components/text.tsx'
import { formatConstant, formatDuration, toJson } from '../lib/format.ts'
import type { OperationDoc, Reference } from '../lib/reference.ts'
import { includesRole, roleFor } from '../lib/roles.ts'
import { pathTo } from '../lib/router.ts'
import { fieldsOf, initialValues, requestOf } from '../lib/schema.ts'
import { useResource } from '../lib/use-resource.ts'

/** Every operation as a form; the request in several languages, and the answer. */
export function Page({ params }: PageProps) {
  const { reference, basePath } = useApp()
  const loaded = useResource(() => reference.load(), [])
  const operation =
    params.chain && params.operation
      ? loaded.data?.find(params.chain, params.operation)
      : loaded.data?.operations[0]
  return (
    <>
      <PageHeader
        title="API playground"
        about={
          <>
            Calls run with your key, on real data.{' '}
            <DocumentLink href={`${basePath}/docs`}>API reference</DocumentLink>
          </>
        }
      />
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!loaded.data && loaded.loading && <Skeleton lines={8} />}
      {loaded.data && (
        <div class="split">
          <Operations reference={loaded.data} current={operation?.key} />
          {operation ? (
            <Operation key={operation.key} operation={operation} />
          ) : (
            <Empty title="There is no such operation." />
          )}
        </div>
      )}
    </>
  )
}

function Operations(props: { reference: Reference; current: string | undefined }) {
  const { role } = useAccount()
  const [filter, setFilter] = useState('')
  const groups = useMemo(() => {
    const wanted = filter.trim().toLowerCase()
    const found = props.reference.operations.filter(
      ({ key, name, summary }) =>
        includesRole(role, roleFor(name)) && `${key} ${summary}`.toLowerCase().includes(wanted),
    )
    return Map.groupBy(found, ({ tag }) => tag)
  }, [props.reference, filter, role])
  return (
    <Panel>
      <div class="stack">
        <input
          type="search"
          aria-label="Filter operations"
          placeholder="Filter operations"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <nav class="pick-list" aria-label="Operations">
          {[...groups].map(([tag, operations]) => (
            <div key={tag}>
              <h2>{tag}</h2>
              {operations.map(({ key, chain, name }) => (
                <Link
                  key={key}
                  to={pathTo('playground', chain, name)}
                  isCurrent={key === props.current}
                >
                  {name}
                </Link>
              ))}
            </div>
          ))}
          {groups.size === 0 && <p class="soft">No operation has this in its name.</p>}
        </nav>
      </div>
    </Panel>
  )
}

type Outcome = { answer?: unknown; error?: unknown; ms: number }

function Operation({ operation }: { operation: OperationDoc }) {
  const { client } = useAccount()
  const { baseUrl } = useApp()
  const known = operation.example as Record<string, unknown> | undefined
  const [request, setRequest] = useState(
    () => requestOf(fieldsOf(operation.schema), initialValues(operation.schema, known)).request,
  )
  const [outcome, setOutcome] = useState<Outcome | undefined>()
  const run = async (body: Record<string, unknown>) => {
    setRequest(body)
    const begun = performance.now()
    try {
      const call = client.chain(operation.chain)[operation.name as 'ListWallets']
      const answer: unknown = await call(body)
      setOutcome({ answer, ms: performance.now() - begun })
    } catch (error) {
      setOutcome({ error, ms: performance.now() - begun })
      throw error
    }
  }
  return (
    <div class="stack">
      <Panel
        title={operation.name}
        actions={
          <>
            <Badge>{formatConstant(roleFor(operation.name), 'ROLE_')}</Badge>
            {operation.isExtension && <Badge tone="sea">extension</Badge>}
          </>
        }
      >
        <div class="stack">
          <p>{operation.description}</p>
          <p class="mono soft">POST {operation.path}</p>
          <SchemaForm
            schema={operation.schema}
            submit="Call"
            {...(known && { known })}
            onSubmit={run}
            onChange={setRequest}
          />
        </div>
      </Panel>
      {outcome && (
        <Panel
          title="Answer"
          actions={
            <Badge tone={outcome.error ? 'bad' : 'good'}>
              {outcome.error ? 'failed' : '200'} · {formatDuration(outcome.ms)}
            </Badge>
          }
        >
          <div role="status">
            {outcome.error ? (
              <Problem error={outcome.error} />
            ) : (
              <Code text={toJson(outcome.answer)} label="answer" />
            )}
          </div>
        </Panel>
      )}
      <Snippets call={{ baseUrl, chain: operation.chain, operation: operation.name, request }} />
    </div>
  )
}
