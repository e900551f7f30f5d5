// The types of the contract. Inside the repository they are those of the catalogue; the published package has a copy
// without the schema library, which `build/print-types.ts` writes in place of this file.

export type { FieldError, Reason } from '../../src/contract/errors/errors.ts'
export type { Catalogue } from '../../src/contract/operations/catalogue.ts'
export type {
  notificationTypes,
  OperationalEventName,
  operationalNotificationType,
} from '../../src/contract/records/states.ts'
export type { authHeaders } from '../../src/contract/signature.ts'
export type { Service } from '../../src/contract/variant.ts'
