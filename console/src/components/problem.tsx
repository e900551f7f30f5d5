import { PortolanError } from '@portolan/client'
import { useEffect, useRef } from 'preact/hooks'
import { useApp } from '../app/context.ts'
import { DocumentLink } from './link.tsx'
import { Words } from './text.tsx'

/** A failure in the words of the problem body, with the fields and the page that explains it. */
export function Problem(props: { error: unknown; onRetry?: (() => void) | undefined }) {
  const { basePath, session } = useApp()
  const { error, onRetry } = props
  const live = session.account.value?.live
  const retry = useRef(onRetry)
  retry.current = onRetry
  // What failed while the service was unreachable is retried when it answers again.
  useEffect(
    () => (error ? live?.listen(({ type }) => type === 'ready' && retry.current?.()) : undefined),
    [error, live],
  )
  if (!error) return null
  const known = error instanceof PortolanError ? error : undefined
  return (
    <div class="problem" role="alert">
      <p>
        <Words
          text={known ? known.detail : error instanceof Error ? error.message : String(error)}
        />
        {known?.retry_after !== undefined && ` Retry in ${known.retry_after} s.`}
      </p>
      {known && known.errors.length > 0 && (
        <ul>
          {known.errors.map(({ field, detail }) => (
            <li key={field}>
              <code>{field}</code> <Words text={detail} />
            </li>
          ))}
        </ul>
      )}
      {known && (
        <p class="problem-foot">
          <DocumentLink href={`${basePath}/docs/errors/${known.reason}`}>
            <code>{known.reason}</code>
          </DocumentLink>
          {known.status > 0 && <span>HTTP {known.status}</span>}
          {known.request_id && <span>request {known.request_id}</span>}
        </p>
      )}
      {onRetry && (
        <button type="button" class="button small" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}
