import { expect, test } from 'vitest'
import { items, pages } from './pages.ts'

type Request = { page_size?: number; page_token?: string }

const listOf = (...chunks: string[][]) => {
  const requests: Request[] = []
  const list = async (request: Request) => {
    requests.push(request)
    const index = Number(request.page_token ?? 0)
    const next_page_token = index + 1 < chunks.length ? String(index + 1) : ''
    return { wallets: chunks[index] ?? [], pagination: { next_page_token } }
  }
  return { list, requests }
}

test('goes over all pages with the same filters', async () => {
  const { list, requests } = listOf(['a', 'b'], [], ['c'])
  const wallets: string[][] = []
  for await (const page of pages(list, { page_size: 2 })) wallets.push(page.wallets)
  expect({ wallets, requests }).toMatchInlineSnapshot(`
    {
      "requests": [
        {
          "page_size": 2,
        },
        {
          "page_size": 2,
          "page_token": "1",
        },
        {
          "page_size": 2,
          "page_token": "2",
        },
      ],
      "wallets": [
        [
          "a",
          "b",
        ],
        [],
        [
          "c",
        ],
      ],
    }
  `)
})

test('goes over all items', async () => {
  const found: string[] = []
  for await (const wallet of items(listOf(['a', 'b'], [], ['c']).list, {})) found.push(wallet)
  expect(found).toEqual(['a', 'b', 'c'])
})

test('asks for no page that is not wanted', async () => {
  const { list, requests } = listOf(['a'], ['b'])
  for await (const wallet of items(list, {})) if (wallet === 'a') break
  expect(requests.length).toBe(1)
})

test('hands the signal on', async () => {
  const signals: unknown[] = []
  const list = async (_: Request, options?: { signal?: AbortSignal }) => {
    signals.push(options?.signal)
    return { wallets: [], pagination: { next_page_token: '' } }
  }
  const { signal } = new AbortController()
  for await (const _ of pages(list, {}, { signal }));
  expect(signals).toEqual([signal])
})
