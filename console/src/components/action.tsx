import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useTask } from '../lib/use-task.ts'
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
  const [asking, setAsking] = useState(false)
  const { busy, error, run, forget } = useTask(async () => {
    setAsking(false)
    await props.run()
    props.onDone?.()
  })
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
            <button
              type="button"
              class={`button ${props.tone ?? 'primary'}`}
              onClick={() => void run()}
            >
              {props.children}
            </button>
          </div>
        </Dialog>
      )}
      {error !== undefined && (
        <Dialog title="That did not work" onClose={forget}>
          <Problem error={error} />
        </Dialog>
      )}
    </>
  )
}
