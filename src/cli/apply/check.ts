import { OperationError } from '../../contract/errors/errors.ts'
import { findOperation } from '../../contract/operations/catalogue.ts'
import type { Service } from '../../contract/variant.ts'
import { prepareOperation } from '../../domain/handlers.ts'
import type { Plan, PlanTools } from './plan-tools.ts'
import type { Where } from './step.ts'

/** Checks the requests of a plan as the operations will, so that a bad field is found before anything is changed. */
export function checkPlan(plan: Plan, tools: Pick<PlanTools, 'refuse' | 'serviceAt'>): void {
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
