import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import { Code } from '../components/code.tsx'
import { Dialog } from '../components/dialog.tsx'
import { ExportButtons } from '../components/export-buttons.tsx'
import { Empty, PageHeader, Panel } from '../components/layout.tsx'
import { PagedTable } from '../components/table.tsx'
import { Badge, Id, Time } from '../components/text.tsx'
import { formatConstant, toJson } from '../lib/format.ts'
import { usePages } from '../lib/use-resource.ts'

const tones: Readonly<Record<string, 'good' | 'bad' | 'warn'>> = {
  AUDIT_RESULT_SUCCEEDED: 'good',
  AUDIT_RESULT_FAILED: 'bad',
  AUDIT_RESULT_REFUSED: 'warn',
}

/** Who did what: the audit log. */
export function Page() {
  const { client } = useAccount()
  const { router } = useApp()
  const operation = router.place.value.query.get('operation') ?? ''
  const [shown, setShown] = useState<object | undefined>()
  const load = async (page_token: string | undefined, signal?: AbortSignal) => {
    const request = {
      page_size: 100,
      ...(operation && { operation }),
      ...(page_token && { page_token }),
    }
    const { audit_events, pagination } = await client.admin.ListAuditEvents(
      request,
      signal && { signal },
    )
    return { items: audit_events, next: pagination.next_page_token }
  }
  const list = usePages(load, [operation])
  return (
    <>
      <PageHeader
        title="Audit log"
        about="What was done, by which key and from where. Every event contains the hash of the one before it."
        actions={<ExportButtons name="audit" load={load} />}
      />
      <Panel flush>
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <label>
            Operation
            <input
              value={operation}
              placeholder="any"
              spellcheck={false}
              onChange={(event) => router.setQuery({ operation: event.currentTarget.value.trim() })}
            />
          </label>
        </form>
        <PagedTable
          label="Audit events"
          list={list}
          keyOf={({ event_id }) => event_id}
          columns={[
            { title: 'Time', cell: ({ event_time }) => <Time at={event_time} /> },
            {
              title: 'Operation',
              cell: (event) => (
                <button type="button" class="link-button" onClick={() => setShown(event)}>
                  {event.operation}
                </button>
              ),
            },
            { title: 'Service', hide: 'medium', cell: ({ service }) => service },
            {
              title: 'Result',
              cell: ({ result, reason }) => (
                <Badge tone={tones[result] ?? 'plain'} title={reason ?? undefined}>
                  {formatConstant(result, 'AUDIT_RESULT_')}
                </Badge>
              ),
            },
            {
              title: 'By',
              hide: 'narrow',
              cell: ({ actor_type, credential_id }) =>
                credential_id ? (
                  <Id value={credential_id} label="credential_id" />
                ) : (
                  formatConstant(actor_type, 'ACTOR_TYPE_')
                ),
            },
            {
              title: 'From',
              hide: 'medium',
              cell: ({ client: from }) => <span class="cell-text">{from ?? '–'}</span>,
            },
          ]}
          empty={<Empty title="No event fits." />}
        />
      </Panel>
      {shown && (
        <Dialog title="Audit event" onClose={() => setShown(undefined)}>
          <Code text={toJson(shown)} label="audit event" />
        </Dialog>
      )}
    </>
  )
}
