import { PageHeader } from '../components/layout.tsx'
import { Events } from './local/events.tsx'
import { Faucet } from './local/faucet.tsx'
import { LocalNodes } from './local/nodes.tsx'
import { Reorganize } from './local/reorganize.tsx'

/** The local chains of the embedded mode: coin, blocks, reorganizations, nodes, and what happens then. */
export function Page() {
  return (
    <>
      <PageHeader
        title="Local chains"
        about="Chains of the embedded mode. Nothing here has value; other installations refuse these calls."
      />
      <div class="columns">
        <div class="stack">
          <Faucet />
          <LocalNodes />
          <Reorganize />
        </div>
        <Events />
      </div>
    </>
  )
}
