import { useState } from 'preact/hooks'
import { Action } from '../../components/action.tsx'
import { Panel } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { Id } from '../../components/text.tsx'
import { findProvider, signWithWallet } from '../../lib/injected-wallet.ts'
import { useForm } from '../../lib/use-task.ts'

/** Signs a transaction with a wallet of the browser, or takes a signature from elsewhere. */
export function Signing(props: {
  transaction: Parameters<typeof signWithWallet>[1]
  messageToSign: () => Promise<string>
  submit: (signature: string) => Promise<unknown>
  onDone: () => void
}) {
  const [message, setMessage] = useState<string | undefined>()
  const provider = findProvider(window)
  const { busy, error, submit } = useForm(async (field) => {
    await props.submit(field('signature'))
    props.onDone()
  })
  return (
    <Panel title="Sign">
      <div class="columns">
        <div class="form">
          <h3>With a wallet of this browser</h3>
          {provider ? (
            <>
              <p class="soft">
                The wallet signs and does not send. It needs <code>eth_signTransaction</code>.
              </p>
              <div class="actions">
                <Action
                  tone="primary"
                  run={async () => props.submit(await signWithWallet(provider, props.transaction))}
                  onDone={props.onDone}
                >
                  Sign with the wallet
                </Action>
              </div>
            </>
          ) : (
            <p class="soft">This browser has no wallet (EIP-1193).</p>
          )}
        </div>
        <form class="form" onSubmit={submit}>
          <h3>With a signature from elsewhere</h3>
          {message === undefined ? (
            <div class="actions">
              <Action small run={async () => setMessage(await props.messageToSign())}>
                Show the hash to sign
              </Action>
            </div>
          ) : (
            <Id value={message} whole label="hash to sign" />
          )}
          <div class="field">
            <label for="signature">signature</label>
            <input
              id="signature"
              name="signature"
              required
              spellcheck={false}
              placeholder="0x, then r, s and the recovery bit"
            />
          </div>
          <Problem error={error} />
          <div class="actions">
            <button type="submit" class="button" disabled={busy}>
              Submit
            </button>
          </div>
        </form>
      </div>
    </Panel>
  )
}
