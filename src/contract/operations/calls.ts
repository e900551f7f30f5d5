import type { MergedAnswer, MergedRequest } from '../merge.ts'
import type { Service, WalletService } from '../variant.ts'
import type { Catalogue } from './catalogue.ts'

/** The request and the answer of an operation, one member for each service that offers it. */
type Call<service extends Service, name extends string> = service extends Service
  ? name extends keyof Catalogue<service>
    ? Catalogue<service>[name] extends infer call extends { request: object; response: object }
      ? call
      : never
    : never
  : never

/** The names of the operations that any wallet service offers. */
export type WalletOperation = {
  [service in WalletService]: keyof Catalogue<service>
}[WalletService]

/** A checked request of a wallet operation, whichever variant it comes from. */
export type WalletRequest<name extends WalletOperation> = MergedRequest<
  Call<WalletService, name>['request']
>

/** An answer with the fields of every variant that offers the operation; the projection selects those of one. */
export type WalletAnswer<name extends WalletOperation> = MergedAnswer<
  Call<WalletService, name>['response']
>
