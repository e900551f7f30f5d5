import { type Chain, chainId, chainTitle, familyName } from '../lib/chains.ts'
import { pathTo } from '../lib/router.ts'
import { LinkTabs } from './tabs.tsx'

/** One tab per chain, below a section of the console. */
export const ChainTabs = (props: { section: string; chains: readonly Chain[]; current: Chain }) => (
  <LinkTabs
    label="Chains"
    tabs={props.chains.map((chain) => ({
      title: `${chainTitle(chain)} · ${familyName(chain.kind)}`,
      to: pathTo(props.section, chainId(chain)),
      isCurrent: chainId(chain) === chainId(props.current),
    }))}
  />
)
