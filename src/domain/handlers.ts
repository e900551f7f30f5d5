import type { Catalogue } from '../contract/catalogue.ts'
import type { Service } from '../contract/variant.ts'
import { CreateCredential, DeleteCredential, ListCredentials } from './admin/credentials.ts'
import {
  CreateOrganization,
  GetOrganizationByDomain,
  ListOrganizations,
} from './admin/organizations.ts'
import { DeleteRateLimit, GetRateLimit, ListRateLimits, SetRateLimit } from './admin/rate-limits.ts'
import { GetUsage } from './admin/usage.ts'
import type { Handler } from './context.ts'

type HandlersOf<service extends Service> = {
  [name in keyof Catalogue<service>]?: Handler<
    Catalogue<service>[name] extends { request: infer request } ? request : never,
    Catalogue<service>[name] extends { response: infer response } ? response : never
  >
}

const admin: HandlersOf<'admin'> = {
  CreateCredential,
  CreateOrganization,
  DeleteCredential,
  DeleteRateLimit,
  GetOrganizationByDomain,
  GetRateLimit,
  GetUsage,
  ListCredentials,
  ListOrganizations,
  ListRateLimits,
  SetRateLimit,
}

/** What each operation does, by service and name. What is not here answers NOT_IMPLEMENTED. */
export const handlers: { readonly [service in Service]: HandlersOf<service> } = {
  admin,
  q: {},
  t: {},
  s: {},
  p: {},
  c: {},
}

/** The handler of an operation, if this version has it. */
export const findHandler = (service: Service, name: string): Handler | undefined =>
  Object.hasOwn(handlers[service], name)
    ? (handlers[service] as Record<string, Handler>)[name]
    : undefined
