import { useApp } from '../app/context.ts'
import type { Chain } from '../lib/chains.ts'
import { useResource } from '../lib/use-resource.ts'
import { Dialog } from './dialog.tsx'
import { SchemaForm } from './form.tsx'
import { Skeleton } from './layout.tsx'
import { Problem } from './problem.tsx'
import { Words } from './text.tsx'

/** A dialog with the form of one operation, made from its schema. */
export function OperationDialog(props: {
  title: string
  submit: string
  /** The chain, or `admin`. */
  on: Chain | 'admin'
  operation: string
  known?: Readonly<Record<string, unknown>>
  fixed?: readonly string[]
  run: (request: Record<string, unknown>) => Promise<unknown>
  onClose: () => void
}) {
  const { reference } = useApp()
  const chain = props.on === 'admin' ? 'admin' : props.on.chain
  const found = useResource(
    async () => (await reference.load()).find(chain, props.operation),
    [chain, props.operation],
  )
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <Problem error={found.error} onRetry={found.reload} />
      {!found.data && found.loading && <Skeleton />}
      {found.data && (
        <SchemaForm
          schema={found.data.schema}
          submit={props.submit}
          {...(props.known && { known: props.known })}
          {...(props.fixed && { fixed: props.fixed })}
          onSubmit={props.run}
        >
          {found.data.description !== found.data.summary && (
            <p class="hint">
              <Words text={found.data.description} />
            </p>
          )}
        </SchemaForm>
      )}
    </Dialog>
  )
}
