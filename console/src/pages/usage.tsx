import { useAccount } from '../app/context.ts'
import { PageHeader } from '../components/layout.tsx'
import { Limits } from '../components/limits.tsx'
import { Usage } from '../components/usage.tsx'

/** The limits and the use of your own organization. */
export function Page() {
  const { organization } = useAccount()
  const { organization_id, name } = organization
  return (
    <>
      <PageHeader title="Limits and usage" about={`What ${name} may use, and uses.`} />
      <div class="stack">
        <Limits organization_id={organization_id} />
        <Usage organization_id={organization_id} />
      </div>
    </>
  )
}
