import { useState } from 'preact/hooks'
import { useLive } from '../../app/use-live.ts'
import { Empty, Panel } from '../../components/layout.tsx'
import { Link } from '../../components/link.tsx'
import { Badge, Time } from '../../components/text.tsx'
import { toJson } from '../../lib/format.ts'
import type { LiveEvent } from '../../lib/live.ts'

const maxEvents = 40

const tones: Readonly<Record<string, 'good' | 'bad' | 'warn' | 'sea'>> = {
  transfer: 'sea',
  confirmation: 'good',
  retraction: 'bad',
  reorganization: 'warn',
  delivery: 'good',
  problem: 'bad',
}

/** The newest events of all chains. */
export function Events() {
  const [events, setEvents] = useState<readonly { id: number; event: LiveEvent }[]>([])
  const [count, setCount] = useState(0)
  useLive((event) => {
    if (event.type === 'head' || event.type === 'ready') return
    setCount((last) => last + 1)
    setEvents((last) => [{ id: (last[0]?.id ?? 0) + 1, event }, ...last].slice(0, maxEvents))
  })
  return (
    <Panel title="What happens" actions={<Badge>{count}</Badge>}>
      {events.length === 0 && (
        <Empty title="Nothing yet.">
          <p>
            Send coin to an address of a <Link to="wallets">wallet</Link>, and see transfer and
            delivery arrive.
          </p>
        </Empty>
      )}
      <ol class="timeline" aria-live="off">
        {events.map(({ id, event }) => (
          <li key={id}>
            <p class="actions">
              <Badge tone={tones[event.type] ?? 'plain'}>{event.type}</Badge>
              <span>{event.chain}</span>
              <Time at={event.create_time} />
            </p>
            <details>
              <summary class="soft">Data</summary>
              <pre class="event-data">{toJson(event.data)}</pre>
            </details>
          </li>
        ))}
      </ol>
    </Panel>
  )
}
