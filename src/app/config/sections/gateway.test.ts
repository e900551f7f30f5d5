import { expect, test } from 'vitest'
import { gatewayRules } from './gateway.ts'

const refused = (name: string) =>
  gatewayRules({ allowed_methods: [name] } as Parameters<typeof gatewayRules>[0]).length > 0

test.each([
  'txpool_content',
  'txpool_status',
  'trace_block',
  'trace_transaction',
  'trace_filter',
  'debug_traceTransaction',
  'debug_traceCall',
  'debug_traceBlockByNumber',
  'debug_getRawReceipts',
  'debug_storageRangeAt',
  'evm_getProof',
  'eth_getBlockReceipts',
  'erigon_getHeaderByNumber',
])('%s can be allowed', (name) => {
  expect(refused(name)).toBe(false)
})

test.each([
  'debug_setHead',
  'debug_traceBlockFromFile',
  'debug_standardTraceBlockToFile',
  'debug_startCPUProfile',
  'debug_chaindbCompact',
  'admin_addPeer',
  'personal_sign',
  'miner_start',
  'engine_newPayloadV3',
  'anvil_setBalance',
  'hardhat_reset',
  'evm_mine',
  'evm_setNextBlockTimestamp',
  'eth_accounts',
  'eth_sign',
  'eth_signTransaction',
  'eth_sendTransaction',
  'eth_submitWork',
])('%s is never passed on', (name) => {
  expect(refused(name)).toBe(true)
})
