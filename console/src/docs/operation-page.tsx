import { useApp } from '../app/context.ts'
import { SignInForm } from '../app/sign-in.tsx'
import { Code } from '../components/code.tsx'
import { Empty, PageHeader, Panel } from '../components/layout.tsx'
import { Link } from '../components/link.tsx'
import { Snippets } from '../components/snippets.tsx'
import { Badge, Words } from '../components/text.tsx'
import { formatConstant, toJson } from '../lib/format.ts'
import type { OperationDoc } from '../lib/reference.ts'
import { roleFor } from '../lib/roles.ts'
import { type FormField, fieldsOf, initialValues, requestOf } from '../lib/schema.ts'
import { Operation } from '../pages/playground/operation.tsx'

/** One operation: its fields, an example, and a form that tries it. */
export function OperationPage({ operation }: { operation: OperationDoc | undefined }) {
  const { session, baseUrl } = useApp()
  if (!operation)
    return (
      <>
        <PageHeader title="Not found" />
        <Empty title="This installation has no such operation.">
          <Link to="docs">Documentation</Link>
        </Empty>
      </>
    )
  const { name, chain, path, summary, description, schema, answer } = operation
  const known = operation.example as Record<string, unknown> | undefined
  const fields = fieldsOf(schema)
  const { request } = requestOf(fields, initialValues(schema, known))
  return (
    <>
      <PageHeader
        title={name}
        about={summary}
        actions={
          <>
            <Badge>{formatConstant(roleFor(name), 'ROLE_')}</Badge>
            {operation.isExtension && <Badge tone="sea">extension</Badge>}
          </>
        }
      />
      <div class="columns">
        <div class="stack">
          <Panel title="Request">
            <div class="stack">
              <p class="mono">POST {path}</p>
              {description !== summary && (
                <p>
                  <Words text={description} />
                </p>
              )}
              <Fields fields={fields} />
            </div>
          </Panel>
          {session.account.value ? (
            <Operation operation={operation} isDescribed />
          ) : (
            <Panel title="Try it">
              <SignInForm>
                <p class="hint">The page signs with the key in your browser and keeps no secret.</p>
              </SignInForm>
            </Panel>
          )}
        </div>
        <div class="stack">
          {!session.account.value && (
            <Snippets call={{ baseUrl, chain, operation: name, request }} />
          )}
          <Panel title="Answer">
            {answer === undefined ? (
              <p class="soft">A JSON object.</p>
            ) : (
              <Code text={toJson(answer)} label="example of an answer" />
            )}
          </Panel>
        </div>
      </div>
    </>
  )
}

const kinds: Readonly<Record<FormField['kind'], string>> = {
  text: 'string',
  integer: 'integer',
  flag: 'boolean',
  choice: 'one of the values below',
  choices: 'list of the values below',
  lines: 'list of strings',
  group: 'object',
}

function Fields({ fields }: { fields: readonly FormField[] }) {
  if (fields.length === 0) return <p class="soft">The request has no fields: send {'{}'}.</p>
  return (
    <dl class="docs-fields">
      {fields.map((field) => (
        <div key={field.path}>
          <dt>
            <code>{field.name}</code>{' '}
            <span class="soft">
              {kinds[field.kind]}
              {field.required ? ', required' : field.needsOne ? ', one of these is needed' : ''}
            </span>
          </dt>
          <dd>
            {field.leftOut && (
              <p class="soft">
                Left out: <Words text={field.leftOut} />.
              </p>
            )}
            {field.description && (
              <p>
                <Words text={field.description} />
              </p>
            )}
            {field.choices.length > 0 && (
              <p class="soft">
                {field.choices.map((choice) => (
                  <span key={choice}>
                    <code>{choice}</code>{' '}
                  </span>
                ))}
              </p>
            )}
            {field.fields.length > 0 && <Fields fields={field.fields} />}
          </dd>
        </div>
      ))}
    </dl>
  )
}
