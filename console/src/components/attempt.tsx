import type { Client, ItemOf } from '@portolan/client'
import { formatCount, formatDuration, prettyJson } from '../lib/format.ts'
import { Code } from './code.tsx'
import { Badge, Time } from './text.tsx'

type Attempt = ItemOf<Awaited<ReturnType<Client['c']['ListWebhookAttempts']>>>
type Headers = Attempt['request_headers']

/** One attempt of a delivery: its result, and the headers and the body of both sides. */
export function Attempt({ attempt, sent }: { attempt: Attempt; sent: string | undefined }) {
  const { attempt: number, status_code, request_headers, response_headers, response_body } = attempt
  const isGood = status_code !== null && status_code >= 200 && status_code < 300
  return (
    <li data-tone={isGood ? 'good' : 'bad'}>
      <p>
        <strong>Attempt {number}</strong> <Time at={attempt.attempt_time} />{' '}
        <Badge tone={isGood ? 'good' : 'bad'}>
          {status_code === null ? 'no answer' : `HTTP ${status_code}`}
        </Badge>{' '}
        <span class="soft">{formatDuration(attempt.duration_ms)}</span>
      </p>
      {attempt.error && <p class="field-error">{attempt.error}</p>}
      <Side title="Request" headers={request_headers} body={sent} attempt={number} />
      {status_code !== null && (
        <Side
          title="Response"
          headers={response_headers}
          body={response_body && prettyJson(response_body)}
          attempt={number}
          open={!isGood}
        />
      )}
    </li>
  )
}

function Side(props: {
  title: string
  headers: Headers
  body: string | undefined
  attempt: number
  open?: boolean
}) {
  const { title, headers, body, attempt, open = false } = props
  if (headers.length === 0 && !body) return null
  return (
    <details class="exchange" open={open}>
      <summary>
        {title}{' '}
        <span class="soft">
          {headers.length > 0 && `${formatCount(headers.length)} headers`}
          {headers.length > 0 && body && ', '}
          {body && 'body'}
        </span>
      </summary>
      {headers.length > 0 && (
        <dl class="headers">
          {headers.map(({ header_key, header_value, is_masked }, index) => (
            <div key={`${index} ${header_key}`}>
              <dt>{header_key}</dt>
              <dd>
                {is_masked ? (
                  <span class="soft" title="The value is not kept.">
                    ••••••
                  </span>
                ) : (
                  header_value
                )}
              </dd>
            </div>
          ))}
        </dl>
      )}
      {body && <Code text={body} label={`${title.toLowerCase()} body of attempt ${attempt}`} />}
    </details>
  )
}
