import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { onTestFinished } from 'vitest'
import type { TestApp } from '../helpers/app.ts'
import type { ScriptedChains } from '../helpers/scripted-chains.ts'
import { authHeaders, type Pair } from '../helpers/signer.ts'
import { waitFor } from '../helpers/wait-for.ts'

type Sent = { id?: string; type: string; text: string }
// biome-ignore lint/suspicious/noExplicitAny: tests look at members of any event
export type Parsed = { id?: string; type: string; json: any }

/** A stream as a client sees it. */
export type Opened = {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look at members of any answer
  problem: any
  events: Parsed[]
  of(...types: string[]): Parsed[]
  comments: string[]
  isClosed(): boolean
  close(): void
  response: IncomingMessage
}

/** Opens a stream with these headers, and reads it until the test ends. */
export const open = async (
  app: TestApp,
  path: string,
  headers: Record<string, string>,
): Promise<Opened> => {
  const asked = request(`${app.base_url}${path}`, { headers, agent: false }).end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  onTestFinished(() => void asked.destroy())
  const events: Parsed[] = []
  const comments: string[] = []
  let text = ''
  let isClosed = false
  response.setEncoding('utf8')
  response.on('error', () => {})
  response.on('close', () => {
    isClosed = true
  })
  response.on('data', (chunk: string) => {
    text += chunk
    if (response.statusCode !== 200) return
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const sent: Partial<Sent> = {}
      for (const line of text.slice(0, end).split('\n')) {
        if (line.startsWith(':')) comments.push(line)
        if (line.startsWith('id: ')) sent.id = line.slice(4)
        if (line.startsWith('event: ')) sent.type = line.slice(7)
        if (line.startsWith('data: ')) sent.text = line.slice(6)
      }
      text = text.slice(end + 2)
      if (sent.text !== undefined) {
        const { id, type = '' } = sent
        events.push({ ...(id !== undefined && { id }), type, json: JSON.parse(sent.text) })
      }
    }
  })
  if (response.statusCode !== 200) await once(response, 'end')
  return {
    status: response.statusCode ?? 0,
    problem: response.statusCode === 200 ? undefined : JSON.parse(text),
    events,
    of: (...types) => events.filter(({ type }) => types.includes(type)),
    comments,
    isClosed: () => isClosed,
    close: () => void asked.destroy(),
    response,
  }
}

/** Opens a stream with the signature of a key. */
export const signed = (app: TestApp, pair: Pair, path: string): Promise<Opened> =>
  open(app, path, authHeaders(pair, { method: 'GET', path }))

/** Waits until a stream has said from which position on it sends. */
export const isReady = (stream: Opened): Promise<void> =>
  waitFor('the stream is ready', () => stream.of('ready').length > 0)

/** The status and the reason of a refusal. */
export const reasonOf = ({ status, problem }: Opened): unknown[] => [status, problem?.reason]

/** Creates a tenant with a wallet on chain C. */
export const createOwner = async (service: TestApp, chains: ScriptedChains, confirmation = 1) => {
  const tenant = await service.createTenant()
  const address = `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(20))).toString('hex')}`
  const { json } = await service.call(tenant.member, 'c/RegisterWallet', {
    ...{ name: 'wallet', confirmation },
  })
  await service.call(tenant.member, 'c/RegisterAddress', { wallet_id: json.wallet_id, address })
  const parsed = chains.c.parseAddress(address)
  if (!parsed.ok) throw new Error(parsed.detail)
  const pay = (value: bigint) => chains.c.mine([{ movements: [{ to: parsed.bytes, value }] }])
  return { ...tenant, wallet_id: json.wallet_id as string, pay, to: parsed.bytes }
}
