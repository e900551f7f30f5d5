import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Dialog } from './dialog.tsx'
import { Problem } from './problem.tsx'

/** A button that does something over the network, once at a time, and shows why it failed. */
export function Action(props: {
  run: () => Promise<unknown>
  /** Asked before; what cannot be undone has one. */
  confirm?: string
  tone?: 'primary' | 'danger' | 'plain'
  small?: boolean
  onDone?: () => void
  children?: ComponentChildren
}) {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<unknown>()
  const [asking, setAsking] = useState(false)
  const run = async () => {
    setAsking(false)
    setBusy(true)
    setError(undefined)
    try {
      await props.run()
      props.onDone?.()
    } catch (failure) {
      setError(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <>
      <button
        type="button"
        class={`button ${props.tone ?? 'plain'} ${props.small ? 'small' : ''}`}
        disabled={busy}
        aria-busy={busy}
        onClick={() => (props.confirm ? setAsking(true) : void run())}
      >
        {props.children}
      </button>
      {asking && (
        <Dialog title="Are you sure?" onClose={() => setAsking(false)}>
          <p>{props.confirm}</p>
          <div class="actions">
            <button type="button" class={`button ${props.tone ?? 'primary'}`} onClick={run}>
              {props.children}
            </button>
          </div>
        </Dialog>
      )}
      {error !== undefined && (
        <Dialog title="That did not work" onClose={() => setError(undefined)}>
          <Problem error={error} />
        </Dialog>
      )}
    </>
  )
}
