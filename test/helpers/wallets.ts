import { randomBytes } from 'node:crypto'
import { Compile } from 'typebox/compile'
import type { Family } from '../../src/chains/chain.ts'
import { families } from '../../src/chains/registry.ts'
import {
  createScriptedChain,
  type ScriptedChain,
  type ScriptOptions,
} from '../../src/chains/testing/scripted-chain.ts'
import { OperationError } from '../../src/contract/errors/errors.ts'
import { responseSchema } from '../../src/contract/operation.ts'
import { findOperation } from '../../src/contract/operations/catalogue.ts'
import { createProjection } from '../../src/contract/project.ts'
import type { Role } from '../../src/contract/roles.ts'
import type { WalletService } from '../../src/contract/variant.ts'
import type { Installation } from '../../src/domain/context.ts'
import { prepareOperation } from '../../src/domain/handlers.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { systemIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { insertOrganization } from '../../src/storage/access/organizations.ts'
import { createSealer } from '../../src/storage/access/seal.ts'
import type { Db } from '../../src/storage/pg/database.ts'
import { ensureNetwork } from '../../src/storage/tracking/networks.ts'
import { oneChain } from './one-chain.ts'

/** An answer of an operation, or its failure. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at members of any answer
export type Outcome = any

/** An organization that calls operations without HTTP: check, handler, projection. */
export type Caller = {
  organization_id: string
  /** The answer; throws the OperationError of a refusal. */
  call(operation: string, request?: object): Promise<Outcome>
  /** The reason of a refusal, or `OK`. */
  reason(operation: string, request?: object): Promise<string>
}

/** A wallet service on a scripted chain. */
export type WalletBench = {
  service: WalletService
  chain: ScriptedChain
  network_id: number
  family: Family
  installation: Installation
  /** Different accounts by number, in bytes and as text. */
  account(number: number): Buffer
  address(number: number): string
  /** A caller of a new organization, or of one that is there. */
  createCaller(options?: {
    configured?: boolean
    role?: Role
    organization_id?: string
  }): Promise<Caller>
}

const lengths = { t: 32, s: 32, p: 32, c: 20 }

/** An account of a family, made from a number. */
export const accountOf = (service: WalletService, number: number): Buffer => {
  const account = Buffer.alloc(lengths[service], 0xa5)
  account.writeUInt32BE(number, lengths[service] - 4)
  return service === 't' ? Buffer.concat([Buffer.from([0]), account]) : account
}

/** Makes a bench on a database; the tracker is for the test to run. */
export const createWalletBench = async (
  db: Db,
  service: WalletService,
  options: Omit<Partial<ScriptOptions>, 'family'> & { clock?: Clock; network?: string } = {},
): Promise<WalletBench> => {
  const { clock = systemClock, network = 'mainnet', ...script } = options
  const family = families[service]()
  const chain = createScriptedChain({ family, endowment: 1_000_000n, ...script })
  const now = new Date(clock.now())
  const network_id = await ensureNetwork(db, { chain: service, network, create_time: now })
  const sealer = createSealer(randomBytes(32))
  const base = { db, clock, ids: systemIds, sealer, log: silentLog }
  const installation = { ...base, chains: oneChain(network_id, () => chain, network) }

  const createCaller: WalletBench['createCaller'] = async (options = {}) => {
    const { configured = true, role = 'ROLE_MEMBER' } = options
    const { organization_id = systemIds.uuid() } = options
    const domain = `t-${systemIds.bytes(8).toString('hex')}`
    if (options.organization_id === undefined)
      await insertOrganization(db, { organization_id, name: 'n', domain, create_time: now })
    const principal = {
      credential_id: systemIds.uuid(),
      organization_id,
      role,
    }
    const call = async (operation: string, request: object = {}) => {
      const entry = findOperation(service, operation)
      const prepare = entry && prepareOperation(entry)
      if (!prepare) throw new Error(`no operation ${service}/${operation}`)
      const context = {
        ...(configured ? installation : base),
        principal,
        service,
        chain: service,
        operation,
        signal: new AbortController().signal,
      }
      const { perform } = prepare(JSON.parse(JSON.stringify(request)))
      const answer = createProjection(entry)(await perform(context))
      const sent = JSON.parse(JSON.stringify(answer))
      const schema = Compile(responseSchema(entry.row, service))
      if (!schema.Check(sent))
        throw new Error(`${operation}: ${JSON.stringify([sent, ...schema.Errors(sent)])}`)
      return sent
    }
    const reason = (operation: string, request?: object) =>
      call(operation, request).then(
        () => 'OK',
        (error: unknown) => {
          if (error instanceof OperationError) return error.reason
          throw error
        },
      )
    return { organization_id, call, reason }
  }

  return {
    service,
    chain,
    network_id,
    family,
    installation,
    account: (number) => accountOf(service, number),
    address: (number) => family.formatAddress(accountOf(service, number)),
    createCaller,
  }
}
