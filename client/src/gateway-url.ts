/** What the address of the node gateway is made of. */
export type GatewayAddress = {
  /** The base_url or the ws_url of the service. */
  base_url: string
  /** The chain segment, such as `c` or `q`. */
  chain: string
  /** The network segment, such as `mainnet`. */
  network: string
  api_key: string
}

/**
 * The JSON-RPC address, for any Ethereum library. It holds the key: keep it out of logs.
 *
 * @example
 * gatewayUrl({ base_url: 'https://host', chain: 'c', network: 'mainnet', api_key: 'k' })
 * // 'https://host/c/mainnet/v1/k'
 */
export const gatewayUrl = (address: GatewayAddress): string => join(address, 'http', 'v1')

/**
 * The WebSocket address, for filters and subscriptions.
 *
 * @example
 * gatewayWsUrl({ base_url: 'https://host', chain: 'c', network: 'mainnet', api_key: 'k' })
 * // 'wss://host/c/mainnet/v1/ws/k'
 */
export const gatewayWsUrl = (address: GatewayAddress): string => join(address, 'ws', 'v1/ws')

function join({ base_url, chain, network, api_key }: GatewayAddress, scheme: string, v: string) {
  const base = base_url.replace(/^(?:http|ws)(?=s?:)/i, scheme).replace(/\/+$/, '')
  const [chainPart, networkPart, keyPart] = [chain, network, api_key].map(encodeURIComponent)
  return `${base}/${chainPart}/${networkPart}/${v}/${keyPart}`
}
