import type { Catalogue } from '../contract/operations/catalogue.ts'
import type { WalletHandler } from './context.ts'
import { type HandlersOf, handlers, handlersOf } from './handlers.ts'

type Equal<a, b> =
  (<x>() => x extends a ? 1 : 2) extends <x>() => x extends b ? 1 : 2 ? true : false
const isTrue = <_ extends true>() => {}

// The table has the operations of the catalogue, all of them and no others.
isTrue<Equal<keyof (typeof handlers)['t'], keyof Catalogue<'t'>>>()
isTrue<Equal<keyof (typeof handlers)['c'], keyof Catalogue<'c'>>>()
isTrue<Equal<keyof (typeof handlers)['admin'], keyof Catalogue<'admin'>>>()

declare const complete: HandlersOf<'q'>
handlersOf<'q'>()(complete)

const { GetBlock, ...incomplete } = complete
// @ts-expect-error an operation is missing
handlersOf<'q'>()(incomplete)
// @ts-expect-error an operation of another service
handlersOf<'q'>()({ ...complete, RegisterWallet: handlers.t.RegisterWallet })
// @ts-expect-error the answer is not the one of the catalogue
handlersOf<'q'>()({ ...complete, GetBlock: async () => ({ block: 1 }) })
// @ts-expect-error a field of the answer is missing
handlersOf<'t'>()({ ...handlers.t, RegisterWallet: async () => ({}) })
handlersOf<'q'>()({
  ...complete,
  // @ts-expect-error the request has no such field
  GetBlock: (context, { block_hash }) => GetBlock(context, { block_number: Number(block_hash) }),
})

// The answer that is kept for an idempotency key is the answer of the operation.
;(async (context) => {
  // @ts-expect-error not its answer
  await context.record?.(context.db, { id: '' })
  return { wallet_id: '' }
}) satisfies WalletHandler<'RegisterWallet'>
