/** One JSON-RPC call over HTTP; returns the result, throws on an error. */
export async function callRpc<result = unknown>(
  url: string,
  method: string,
  params: unknown[],
  timeoutMs = 30_000,
): Promise<result> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const answer = (await response.json()) as { result: result; error?: { message: string } }
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`)
  return answer.result
}
