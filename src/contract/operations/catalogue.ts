// The catalogue of operations: name, request, response, role and limits of each, by service. It may use
// `contract` only. Routes, validation, handler types, OpenAPI, the typed client and `docs/operations.md`
// derive from it, so an operation cannot differ between them.

import type { NamesIn, Operation, Request, Response } from '../operation.ts'
import { type Service, services } from '../variant.ts'
import { admin } from './admin.ts'
import { events } from './events.ts'
import { overview } from './overview.ts'
import { query } from './query.ts'
import { sink } from './sink.ts'
import { token } from './token.ts'
import { transaction } from './transaction.ts'
import { wallet } from './wallet.ts'
import { webhook } from './webhook.ts'

const walletRows = { ...wallet, ...webhook, ...sink, ...events }

/** Every row that a service may offer; a row counts where its `services` has the tag. */
const rows = {
  admin: { ...admin, ...overview, ...events },
  q: query,
  t: walletRows,
  s: walletRows,
  p: walletRows,
  c: { ...walletRows, ...transaction, ...token },
}
type Rows = typeof rows
type Tags = typeof services

/** The operations of a service by name. */
export type Catalogue<service extends Service> = {
  [name in NamesIn<Rows[service], Tags[service]>]: Rows[service][name] extends infer row extends
    Operation
    ? {
        request: Request<row, Tags[service]>
        response: Response<row, Tags[service]>
      }
    : never
}

/** The row of an operation by service and name, with its literal types. */
export type Row<
  service extends Service,
  name extends keyof Rows[service],
> = Rows[service][name] extends infer row extends Operation ? row : never

/** One operation of one service. */
export type Entry = { service: Service; name: string; row: Operation }

/** Every operation of every service: the specification's 95 and the extensions. */
export const catalogue: readonly Entry[] = Object.entries(rows).flatMap(([service, operations]) =>
  Object.entries(operations as Record<string, Operation>)
    .filter(([, row]) => row.services.includes(services[service as Service]))
    .map(([name, row]) => ({ service: service as Service, name, row })),
)

const index = new Map(catalogue.map((entry) => [`${entry.service}/${entry.name}`, entry]))

/** Finds an operation by the two segments of its path; undefined for anything else. */
export const findOperation = (service: string, name: string): Entry | undefined =>
  index.get(`${service}/${name}`)

/** The path of an operation on the default network of a chain. */
export const pathOf = (chain: string, name: string): string => `/v1/${chain}/${name}`
