import { expect, test } from 'vitest'
import { gatewayUrl, gatewayWsUrl } from './gateway-url.ts'

test.each([
  ['http://127.0.0.1:8080', 'http://127.0.0.1:8080', 'ws://127.0.0.1:8080'],
  ['https://host/', 'https://host', 'wss://host'],
  ['https://host/api//', 'https://host/api', 'wss://host/api'],
  ['wss://host', 'https://host', 'wss://host'],
])('of %s', (base_url, http, ws) => {
  const address = { base_url, chain: 'c', network: 'mainnet', api_key: 'k/1' }
  expect(gatewayUrl(address)).toBe(`${http}/c/mainnet/v1/k%2F1`)
  expect(gatewayWsUrl(address)).toBe(`${ws}/c/mainnet/v1/ws/k%2F1`)
})
