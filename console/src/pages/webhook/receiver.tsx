import { useState } from 'preact/hooks'
import { useAccount } from '../../app/context.ts'
import { Action } from '../../components/action.tsx'
import { Code } from '../../components/code.tsx'
import { Panel } from '../../components/layout.tsx'
import { Choice } from '../../components/tabs.tsx'
import { Id } from '../../components/text.tsx'
import type { Chain } from '../../lib/chains.ts'
import { receivers } from '../../lib/receivers.ts'

/** The signing secret, on request, and a receiver in several languages. */
export function Receiver({ chain, webhook_id }: { chain: Chain; webhook_id: string }) {
  const { on, may } = useAccount()
  const [language, setLanguage] = useState('typescript')
  const [secret, setSecret] = useState<string | undefined>()
  const operations = on(chain)
  const receiver = receivers.find((one) => one.language === language) ?? receivers[0]!
  return (
    <div class="stack">
      {may('GetWebhookSigningSecret', chain) && (
        <Panel
          title="Signing secret"
          actions={
            <>
              {secret === undefined && (
                <Action
                  small
                  run={async () => {
                    setSecret(
                      (await operations.GetWebhookSigningSecret({ webhook_id })).signing_secret,
                    )
                  }}
                >
                  Show
                </Action>
              )}
              <Action
                small
                confirm="Give the webhook a new secret? Both sign for 24 hours."
                run={async () => {
                  setSecret(
                    (await operations.RotateWebhookSigningSecret({ webhook_id })).signing_secret,
                  )
                }}
              >
                Rotate
              </Action>
            </>
          }
        >
          {secret === undefined ? (
            <p class="soft">Every delivery is signed with it, as in Standard Webhooks.</p>
          ) : (
            <Id value={secret} whole label="signing secret" />
          )}
        </Panel>
      )}
      <Panel
        title="A receiver"
        actions={
          <Choice
            label="Language"
            options={receivers.map((one) => [one.language, one.title] as const)}
            value={language}
            onChange={setLanguage}
          />
        }
      >
        <Code text={receiver.text} label={`receiver in ${receiver.title}`} />
      </Panel>
    </div>
  )
}
