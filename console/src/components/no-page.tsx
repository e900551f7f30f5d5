import { formatConstant } from '../lib/format.ts'
import { roleFor } from '../lib/roles.ts'
import { Empty } from './layout.tsx'
import { Link } from './link.tsx'

/** In place of what an address names and the console does not have. */
export const NoPage = () => (
  <Empty title="This address has no page.">
    <Link to="">Overview</Link>
  </Empty>
)

/** In place of what the key may not see: asking for it would only be refused. */
export const NotAllowed = (props: { operation: string }) => (
  <Empty title="Your key may not use this.">
    <p>
      It needs the role {formatConstant(roleFor(props.operation), 'ROLE_')} and the scope of{' '}
      <code>{props.operation}</code>. <Link to="">Overview</Link>
    </p>
  </Empty>
)
