// What an organization has on one chain. The order of the parts is the order of their dependencies: a webhook may name a
// wallet that the same document creates.

import { type ChainHere, canonical } from './chain-place.ts'
import type { ChainPart } from './document.ts'
import { planSinks } from './plan-sinks.ts'
import type { PlannedPart, PlanTools } from './plan-tools.ts'
import { planWallets } from './plan-wallets.ts'
import { planWebhooks } from './plan-webhooks.ts'
import { field, fromTo } from './step.ts'

/** Plans what an organization has on one chain: contracts first, because wallets hold their tokens. */
export async function planChain(
  part: ChainPart,
  here: ChainHere,
  tools: PlanTools,
): Promise<PlannedPart> {
  const contracts = await planContracts(part, here, tools)
  const { wallets, ...planned } = await planWallets(part, here, tools)
  const webhooks = await planWebhooks(part, here, tools, wallets)
  const sinks = await planSinks(part, here, tools)
  const parts = [contracts, planned, webhooks, sinks]
  return {
    steps: parts.flatMap(({ steps }) => steps),
    extras: parts.flatMap(({ extras }) => extras),
  }
}

async function planContracts(
  { contracts }: ChainPart,
  here: ChainHere,
  tools: PlanTools,
): Promise<PlannedPart> {
  const planned: PlannedPart = { steps: [], extras: [] }
  if (!contracts) return planned
  const { at, organization, domain, service } = here
  const path = [...here.path, 'contracts']
  // Only EVM chains have contracts that are registered by address.
  if (service !== 'c') {
    tools.refuse(path, 'has no meaning on this chain: it has no token contracts to register.')
    return planned
  }
  const where = { at, organization }
  // A new organization has nothing stored, and no id to ask with.
  const stored = new Map(
    organization.id === undefined
      ? []
      : (await tools.read(at, organization.id)('ListContracts', {})).contracts.map((one) => [
          one.contract_address,
          shortType(one.contract_type),
        ]),
  )
  const known = new Set<string>()
  for (const [index, { contract_address: text, contract_type }] of contracts.entries()) {
    const one = [...path, index]
    const contract_address = canonical({ service, path: [...one, 'contract_address'] }, text, tools)
    if (contract_address === undefined) continue
    if (known.has(contract_address))
      tools.refuse([...one, 'contract_address'], 'is in the list twice.')
    known.add(contract_address)
    const before = stored.get(contract_address)
    // Registering it again would only read the contract from the chain once more.
    if (before === contract_type) continue
    planned.steps.push({
      mark: before ? '~' : '+',
      subject: `contract ${contract_address} on ${at}`,
      details: [
        before
          ? fromTo('contract_type', before, contract_type)
          : field('contract_type', contract_type),
      ],
      path: one,
      calls: [
        {
          where,
          operation: 'RegisterContract',
          request: () => ({
            contract_address,
            contract_type: `CONTRACT_TYPE_${contract_type.toUpperCase()}`,
          }),
        },
      ],
    })
  }
  // What is stored and not in the document: reported, or removed with --prune.
  for (const contract_address of [...stored.keys()].filter((one) => !known.has(one))) {
    const subject = `contract ${contract_address} on ${at}`
    if (!tools.prune) planned.extras.push(`${domain}: ${subject}`)
    else
      planned.steps.push({
        ...{ mark: '-', subject, details: [], path },
        calls: [{ where, operation: 'RemoveContract', request: () => ({ contract_address }) }],
      })
  }
  return planned
}

const shortType = (contract_type: string): string =>
  contract_type.replace('CONTRACT_TYPE_', '').toLowerCase()
