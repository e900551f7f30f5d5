import type { Path } from '../../app/config/problem.ts'
import { OperationError } from '../../contract/errors/errors.ts'
import { findOperation } from '../../contract/operations/catalogue.ts'
import type { Service } from '../../contract/variant.ts'
import { prepareOperation } from '../../domain/handlers.ts'
import type { OrganizationsDocument } from './document.ts'
import { planChain } from './plan-chain.ts'
import { planOrganization } from './plan-organization.ts'
import type { Plan, PlanTools } from './plan-tools.ts'
import type { Where } from './step.ts'

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
    // The organization first: chains refer to its id, which exists only after its step has run.
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

/** Checks the requests of a plan as the operations will, so that a bad field is found before anything is changed. */
export function checkPlan(plan: Plan, tools: Pick<PlanTools, 'refuse' | 'serviceAt'>): void {
  // All steps of all organizations before the first change: a document is applied as a whole or not
  // begun.
  for (const step of plan.organizations.flatMap(({ steps }) => steps))
    for (const { where, operation, request } of step.calls) {
      const entry = findOperation(serviceOf(where, tools), operation)
      const prepare = entry && prepareOperation(entry)
      if (!prepare) {
        tools.refuse(step.path, `needs ${operation}, which this chain does not have.`)
        continue
      }
      try {
        prepare(request())
      } catch (error) {
        if (!(error instanceof OperationError)) throw error
        for (const { field, detail } of error.errors ?? [])
          tools.refuse(step.path, `is refused: ${field}: ${detail}`)
      }
    }
}

const serviceOf = (where: Where, tools: Pick<PlanTools, 'serviceAt'>): Service =>
  where === 'admin' ? 'admin' : (tools.serviceAt(where.at) ?? 'admin')
