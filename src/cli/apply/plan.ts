import type { Path } from '../../app/config/problem.ts'
import type { OrganizationsDocument } from './document.ts'
import { planChain } from './plan-chain.ts'
import { planOrganization } from './plan-organization.ts'
import type { Plan, PlanTools } from './plan-tools.ts'

/** Compares the document with what is stored. */
export async function makePlan(document: OrganizationsDocument, tools: PlanTools): Promise<Plan> {
  const plan: Plan = { organizations: [], extras: [] }
  const domains = new Set<string>()
  for (const [index, part] of document.organizations.entries()) {
    const path: Path = ['organizations', index]
    if (domains.has(part.domain)) {
      tools.refuse([...path, 'domain'], 'is in the document twice.')
      continue
    }
    domains.add(part.domain)
    const { organization, ...planned } = await planOrganization(part, path, tools)
    const steps = [...planned.steps]
    plan.extras.push(...planned.extras)
    for (const [at, chain] of Object.entries(part.chains ?? {})) {
      const here = [...path, 'chains', at]
      const service = tools.serviceAt(at)
      if (service === undefined) {
        tools.refuse(here, 'is not a chain of the configuration on which wallets are tracked.')
        continue
      }
      const found = await planChain(
        chain,
        { at, path: here, service, organization, domain: part.domain },
        tools,
      )
      steps.push(...found.steps)
      plan.extras.push(...found.extras)
    }
    plan.organizations.push({ domain: part.domain, steps })
  }
  return plan
}
