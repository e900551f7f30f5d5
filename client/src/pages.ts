import type { CallOptions } from './call.ts'

type Page = { pagination: { next_page_token: string } }

/** The element of the one array in an answer: a wallet of ListWallets, a transfer of ListTransfers. */
export type ItemOf<response> = {
  [name in keyof response]: response[name] extends readonly (infer item)[] ? item : never
}[keyof response]

/** An operation that answers in pages. */
export type PagedCall<request, response> = (
  request: request,
  options?: CallOptions,
) => Promise<response>

/**
 * Goes over the pages of a list.
 *
 * @example
 * for await (const { wallets } of pages(client.c.ListWallets, { page_size: 100 })) save(wallets)
 */
export async function* pages<request extends object | undefined, response extends Page>(
  list: PagedCall<request, response>,
  request: NoInfer<NonNullable<request>>,
  options?: CallOptions,
): AsyncGenerator<response, void, undefined> {
  let next = request
  for (;;) {
    const page = await list(next, options)
    yield page
    const page_token = page.pagination.next_page_token
    if (!page_token) return
    next = { ...next, page_token }
  }
}

/**
 * Goes over the items of a list, page by page.
 *
 * @example
 * for await (const wallet of items(client.c.ListWallets, {})) console.log(wallet.name)
 */
export async function* items<request extends object | undefined, response extends Page>(
  list: PagedCall<request, response>,
  request: NoInfer<NonNullable<request>>,
  options?: CallOptions,
): AsyncGenerator<ItemOf<response>, void, undefined> {
  for await (const page of pages(list, request, options))
    yield* Object.values(page).find((value) => Array.isArray(value)) as ItemOf<response>[]
}
