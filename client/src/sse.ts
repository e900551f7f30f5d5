/** One event of a stream of Server-Sent Events. */
export type SseEvent = { type: string; id: string | undefined; data: string }

/** Reads events out of the bytes of an answer; `onBytes` is called for whatever comes, heartbeats too. */
export async function* readSse(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<SseEvent, void> {
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let waiting = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      onBytes()
      waiting += decoder.decode(value, { stream: true })
      for (;;) {
        const end = waiting.indexOf('\n\n')
        if (end < 0) break
        const event = parseEvent(waiting.slice(0, end))
        waiting = waiting.slice(end + 2)
        if (event) yield event
      }
    }
  } finally {
    // A caller that stops reading closes the connection.
    await reader.cancel().catch(() => {})
  }
}

function parseEvent(block: string): SseEvent | undefined {
  let type = 'message'
  let id: string | undefined
  const data: string[] = []
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') type = value
    else if (name === 'id') id = value
    else if (name === 'data') data.push(value)
  }
  return data.length > 0 ? { type, id, data: data.join('\n') } : undefined
}
