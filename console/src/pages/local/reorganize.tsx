import { useState } from 'preact/hooks'
import { useApp } from '../../app/context.ts'
import { Panel } from '../../components/layout.tsx'
import { Problem } from '../../components/problem.tsx'
import { devCall } from '../../lib/dev-call.ts'
import { useForm } from '../../lib/use-task.ts'

/** Replaces the newest blocks of chain c. */
export function Reorganize() {
  const { baseUrl } = useApp()
  const [done, setDone] = useState<number | undefined>()
  const { busy, error, submit } = useForm(async (field) => {
    setDone(undefined)
    const depth = Number(field('depth'))
    await devCall(baseUrl, 'reorg', { depth })
    setDone(depth)
  })
  return (
    <Panel title="Reorganize">
      <form class="form" onSubmit={submit}>
        <p class="soft">
          Replaces the newest blocks of chain c by others. Transfers in them are retracted, and
          webhooks are notified.
        </p>
        <div class="field">
          <label class="plain" for="depth">
            Blocks
          </label>
          <input id="depth" name="depth" inputMode="numeric" defaultValue="2" required />
        </div>
        <Problem error={error} />
        <div class="actions">
          <button type="submit" class="button" disabled={busy}>
            Reorganize
          </button>
          {done !== undefined && <span role="status">The newest {done} blocks were replaced.</span>}
        </div>
      </form>
    </Panel>
  )
}
