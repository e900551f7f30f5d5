import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createClient } from '../../client/src/index.ts'
import { freshFolder, startService } from '../cli/portolan.ts'
import { waitFor } from '../helpers/wait-for.ts'

type Operations = Record<string, Record<string, (request: object) => Promise<object>>>
type Path = { post: { requestBody: { content: Record<'application/json', { example?: object }> } } }

const exampleOf = ({ post }: Path) => post.requestBody.content['application/json'].example

const dataDir = join(await freshFolder(), '.data')
const service = await startService(dataDir, { args: ['--chains', 'c,q,t,s,p'] })

test('every example request of the API reference succeeds on the demo', {
  timeout: 240_000,
}, async () => {
  const { base_url, admin } = service.connection
  const callers = createClient({ ...service.connection, ...admin! }) as unknown as Operations
  await waitFor(
    'the query chain has a block',
    () =>
      callers.q!.GetBlock!({ block_number: 1 }).then(
        () => true,
        () => false,
      ),
    { timeoutMs: 60_000 },
  )
  let paths: Record<string, Path> = {}
  await waitFor(
    'the demo wallets are made',
    async () => {
      const answer = await fetch(`${base_url}/openapi.json`)
      ;({ paths } = (await answer.json()) as { paths: typeof paths })
      return ['c', 't', 's', 'p'].every((tag) => exampleOf(paths[`/v1/${tag}/GetWallet`]!))
    },
    { timeoutMs: 120_000 },
  )
  const failed: string[] = []
  const missing: string[] = []
  for (const [path, found] of Object.entries(paths)) {
    const example = exampleOf(found)
    const [, , tag = '', operation = ''] = path.split('/')
    if (!example) missing.push(`${tag}/${operation}`)
    else await callers[tag]![operation]!(example).catch((error) => failed.push(`${path}: ${error}`))
  }
  expect(failed).toEqual([])
  // What removes something, or needs something that does not last.
  const kinds = new Set(missing.map((name) => name.split('/')[1]))
  expect([...kinds].sort()).toMatchInlineSnapshot(`
    [
      "BatchRemoveAddresses",
      "CancelTransaction",
      "CreateOrganization",
      "CreateTokenTransaction",
      "DeleteCredential",
      "DeleteRateLimit",
      "GetPendingTransaction",
      "GetRateLimit",
      "GetTransaction",
      "GetTransactionMessageToSign",
      "GetTransactionReceipt",
      "ListInternalTransactions",
      "ListLogs",
      "ListPendingTransactions",
      "ListTransactions",
      "ListWebhookAttempts",
      "RegisterContract",
      "RemoveAddress",
      "RemoveContract",
      "RemoveWebhook",
      "RemoveWebhookHeader",
      "RotateWebhookSigningSecret",
      "SendTransaction",
      "SetRateLimit",
      "SubmitTransactionSignature",
    ]
  `)
  await service.stop()
})
