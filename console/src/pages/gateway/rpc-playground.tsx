import { gatewayUrl, gatewayWsUrl } from '@portolan/client'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useAccount, useApp } from '../../app/context.ts'
import { Code } from '../../components/code.tsx'
import { Empty, Panel } from '../../components/layout.tsx'
import { DocumentLink } from '../../components/link.tsx'
import { Problem } from '../../components/problem.tsx'
import { Badge } from '../../components/text.tsx'
import { chainId, chainTitle, isEvm } from '../../lib/chains.ts'
import { formatDuration, prettyJson } from '../../lib/format.ts'
import { rpcBody, rpcExamples, rpcRequest, withEntry } from '../../lib/rpc.ts'
import { useTask } from '../../lib/use-task.ts'

const maxMessages = 50

/** Sends JSON-RPC with the key of the account: calls and batches by POST, subscriptions over a WebSocket. */
export function RpcPlayground() {
  const account = useAccount()
  const { baseUrl, basePath } = useApp()
  const networks = account.chains.filter(isEvm)
  const [network, setNetwork] = useState(() => networks[0] && chainId(networks[0]))
  const [text, setText] = useState(() => rpcRequest('eth_blockNumber', []))
  const { rpcHistory } = account
  const history = rpcHistory.value
  const [messages, setMessages] = useState<readonly string[]>([])
  const [broken, setBroken] = useState<unknown>()
  const socket = useRef<WebSocket | undefined>(undefined)
  useEffect(() => () => socket.current?.close(), [])
  const sending = useTask(async () => {
    const { body, isSubscription } = rpcBody(text)
    if (isSubscription) subscribe(body)
    else await post(body)
  })
  const chain = networks.find((one) => chainId(one) === network)
  if (!chain) return <Empty title="No EVM network is configured." />
  const place = {
    base_url: baseUrl,
    chain: chain.chain,
    network: chain.network,
    api_key: account.api_key,
  }

  const subscribe = (body: string) => {
    const url = gatewayWsUrl(place)
    const known = socket.current
    // A subscription belongs to its connection, and is ended there.
    if (known?.url === url && known.readyState === WebSocket.OPEN) return known.send(body)
    known?.close()
    setMessages([])
    const opened = new WebSocket(url)
    socket.current = opened
    opened.onopen = () => opened.send(body)
    opened.onmessage = ({ data }) =>
      setMessages((last) => [prettyJson(String(data)), ...last].slice(0, maxMessages))
    opened.onerror = () => setBroken(new Error('The WebSocket was refused or broke.'))
  }
  const post = async (body: string) => {
    const begun = performance.now()
    const answer = await fetch(gatewayUrl(place), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: AbortSignal.timeout(30_000),
    })
    const shown = prettyJson(await answer.text())
    const entry = {
      id: begun,
      request: text,
      answer: shown,
      ms: performance.now() - begun,
      isError: !answer.ok || hasError(shown),
    }
    rpcHistory.value = withEntry(rpcHistory.value, entry)
  }
  const example = exampleOf(methodOf(text))
  const submit = (event: Event) => {
    event.preventDefault()
    setBroken(undefined)
    void sending.run()
  }
  return (
    <div class="columns">
      <Panel title="Request">
        <form class="form" onSubmit={submit}>
          <div class="filters">
            <label>
              Network
              <select value={network} onChange={(event) => setNetwork(event.currentTarget.value)}>
                {networks.map((one) => (
                  <option key={chainId(one)} value={chainId(one)}>
                    {chainTitle(one)}
                  </option>
                ))}
              </select>
            </label>
            <label>
              Method
              <select
                value={example ? example.method : ''}
                onChange={(event) => {
                  const chosen = exampleOf(event.currentTarget.value)
                  if (chosen) setText(rpcRequest(chosen.method, chosen.params))
                }}
              >
                {!example && <option value="">Other</option>}
                {rpcExamples.map(({ method }) => (
                  <option key={method}>{method}</option>
                ))}
              </select>
            </label>
          </div>
          <p class="hint">
            {example?.about}{' '}
            <DocumentLink href={`${basePath}/docs/guide/gateway`}>All about methods</DocumentLink>
          </p>
          <div class="field">
            <label for="rpc">JSON-RPC, one request or a list of them</label>
            <textarea
              id="rpc"
              rows={9}
              spellcheck={false}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </div>
          <Problem error={sending.error ?? broken} />
          <div class="actions">
            <button type="submit" class="button primary" disabled={sending.busy}>
              Send
            </button>
            {messages.length > 0 && (
              <button
                type="button"
                class="button"
                onClick={() => {
                  socket.current?.close()
                  setMessages([])
                }}
              >
                End the subscription
              </button>
            )}
          </div>
        </form>
      </Panel>
      <div class="stack">
        {messages.length > 0 && (
          <Panel title="Subscription" actions={<Badge tone="good">live</Badge>}>
            <Code text={messages.join('\n')} label="messages of the subscription" />
          </Panel>
        )}
        <Panel
          title="History"
          actions={
            history.length > 0 && (
              <button
                type="button"
                class="button small quiet"
                onClick={() => {
                  rpcHistory.value = []
                }}
              >
                Clear history
              </button>
            )
          }
        >
          {history.length === 0 && (
            <Empty title="Nothing was sent yet.">
              <p>
                Choose a method and send it. Answers stay here until you sign out or load the page
                again.
              </p>
            </Empty>
          )}
          <ol class="timeline">
            {history.map((entry) => (
              <li key={entry.id} data-tone={entry.isError ? 'bad' : 'good'}>
                <p class="actions">
                  <strong class="mono">{methodOf(entry.request)}</strong>
                  <span class="soft">{formatDuration(entry.ms)}</span>
                  <button
                    type="button"
                    class="button small quiet"
                    onClick={() => setText(entry.request)}
                  >
                    Use again
                  </button>
                </p>
                <Code text={entry.answer} label={`answer to ${methodOf(entry.request)}`} />
              </li>
            ))}
          </ol>
        </Panel>
      </div>
    </div>
  )
}

const exampleOf = (name: string) => rpcExamples.find(({ method }) => method === name)

/** Whether an answer, or one of a batch, is an error. */
function hasError(text: string): boolean {
  try {
    return [JSON.parse(text)].flat().some((answer: object) => 'error' in answer)
  } catch {
    return true
  }
}

function methodOf(text: string): string {
  try {
    const parsed: unknown = JSON.parse(text)
    if (Array.isArray(parsed)) return `batch of ${parsed.length}`
    return String((parsed as { method?: unknown }).method)
  } catch {
    return 'request'
  }
}
