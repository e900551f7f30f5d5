import { Empty, PageHeader } from './layout.tsx'
import { Link } from './link.tsx'

/** In place of a page whose chain is not of this installation. */
export const NoChain = (props: { title: string }) => (
  <>
    <PageHeader title={props.title} />
    <Empty title="This installation has no such chain.">
      <p>
        Add it to the configuration under <code>chains</code>. <Link to="">Overview</Link>
      </p>
    </Empty>
  </>
)
