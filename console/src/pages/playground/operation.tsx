import { PortolanError } from '@portolan/client'
import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../../app/context.ts'
import { Code } from '../../components/code.tsx'
import { SchemaForm } from '../../components/form.tsx'
import { Panel } from '../../components/layout.tsx'
import { NotAllowed } from '../../components/no-page.tsx'
import { Problem } from '../../components/problem.tsx'
import { Snippets } from '../../components/snippets.tsx'
import { Badge, Words } from '../../components/text.tsx'
import { formatConstant, formatDuration, toJson } from '../../lib/format.ts'
import type { OperationDoc } from '../../lib/reference.ts'
import { roleFor } from '../../lib/roles.ts'
import { fieldsOf, initialValues, requestOf } from '../../lib/schema.ts'

type Outcome = { answer?: unknown; error?: unknown; ms: number }

/** One operation as a form, its answer, and the same call in several languages. */
export function Operation({
  operation,
  isDescribed = false,
}: {
  operation: OperationDoc
  /** The page says already what the operation does. */
  isDescribed?: boolean
}) {
  const { client, may } = useAccount()
  const isAllowed = may(operation.name, operation)
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
      // The form marks its fields; all else is said once, below.
      if (error instanceof PortolanError && error.errors.length > 0) throw error
    }
  }
  return (
    <div class="stack">
      <Panel
        title={isDescribed ? 'Try it' : operation.name}
        actions={
          !isDescribed && (
            <>
              <Badge>{formatConstant(roleFor(operation.name), 'ROLE_')}</Badge>
              {operation.isExtension && <Badge tone="sea">extension</Badge>}
            </>
          )
        }
      >
        <div class="stack">
          {!isDescribed && (
            <>
              <p>
                <Words text={operation.description} />
              </p>
              <p class="mono soft">POST {operation.path}</p>
            </>
          )}
          {isAllowed ? (
            <SchemaForm
              schema={operation.schema}
              submit="Call"
              {...(known && { known })}
              onSubmit={run}
              onChange={setRequest}
            />
          ) : (
            <NotAllowed operation={operation.name} />
          )}
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
