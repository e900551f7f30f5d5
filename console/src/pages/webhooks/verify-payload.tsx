import { verifyWebhook, WebhookError } from '@portolan/client'
import { useState } from 'preact/hooks'
import { Panel } from '../../components/layout.tsx'
import { parseHeaders } from '../../lib/parse-headers.ts'

type Verdict = { ok: boolean; text: string }

/** Checks a pasted delivery as a receiver has to. Nothing of it leaves the page. */
export function VerifyPayload() {
  const [verdict, setVerdict] = useState<Verdict | undefined>()
  const submit = async (event: Event) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const text = (name: string) => String(form.get(name) ?? '')
    try {
      const notification = await verifyWebhook({
        secret: text('secret').trim(),
        headers: parseHeaders(text('headers')),
        // A form writes line ends as CR LF; a body that was signed has none of its own making.
        body: text('body').replaceAll('\r\n', '\n'),
        ...(form.get('old') !== null && { tolerance_seconds: Number.MAX_SAFE_INTEGER }),
      })
      setVerdict({ ok: true, text: `Genuine: ${notification.notification_type}.` })
    } catch (error) {
      const reason = error instanceof WebhookError ? `${error.reason}: ` : ''
      setVerdict({ ok: false, text: reason + (error instanceof Error ? error.message : '') })
    }
  }
  return (
    <Panel title="Verify a delivery">
      <form class="form" onSubmit={submit}>
        <p class="hint">
          Paste what your receiver got. The check runs in this page, as <code>verifyWebhook</code>{' '}
          of the client does it.
        </p>
        <div class="columns">
          <div class="form">
            <div class="field">
              <label for="verify-secret">signing_secret</label>
              <input
                id="verify-secret"
                name="secret"
                required
                autocomplete="off"
                placeholder="whsec_…"
              />
            </div>
            <div class="field">
              <label for="verify-headers">headers</label>
              <textarea
                id="verify-headers"
                name="headers"
                rows={4}
                required
                spellcheck={false}
                placeholder={'webhook-id: …\nwebhook-timestamp: …\nwebhook-signature: v1,…'}
              />
            </div>
            <label class="check">
              <input type="checkbox" name="old" /> Accept a delivery of any age
            </label>
          </div>
          <div class="field">
            <label for="verify-body">body, exactly as received</label>
            <textarea id="verify-body" name="body" rows={9} required spellcheck={false} />
          </div>
        </div>
        <div class="actions">
          <button type="submit" class="button">
            Verify
          </button>
          <span
            role="status"
            class="badge"
            data-tone={verdict && (verdict.ok ? 'good' : 'bad')}
            hidden={!verdict}
          >
            {verdict?.text}
          </span>
        </div>
      </form>
    </Panel>
  )
}
