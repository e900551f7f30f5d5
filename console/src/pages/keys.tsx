import { useAccount } from '../app/context.ts'
import { Credentials } from '../components/credentials.tsx'
import { PageHeader } from '../components/layout.tsx'

/** The keys of your own organization. */
export function Page() {
  const { organization } = useAccount()
  return (
    <>
      <PageHeader title="Keys" about={`API keys of ${organization.name}.`} />
      <Credentials organization_id={organization.organization_id} />
    </>
  )
}
