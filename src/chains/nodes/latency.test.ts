import { expect, test } from 'vitest'
import { createHedging } from '../evm/pool/attempts.ts'
import { createLatency } from './latency.ts'

test('quantiles of the last calls', () => {
  const latency = createLatency()
  for (let ms = 1; ms < 20; ms++) latency.add(ms)
  expect(latency.quantile(0.5)).toBeUndefined()
  expect(latency.quantile(0.5, 1)).toBe(10)
  for (let ms = 20; ms <= 100; ms++) latency.add(ms)
  expect(latency.quantile(0.5)).toBe(51)
  expect(latency.quantile(0.95)).toBe(96)
  for (let call = 0; call < 128; call++) latency.add(7)
  expect(latency.quantile(0.95)).toBe(7)
})

test('the mean follows the last calls', () => {
  const latency = createLatency()
  latency.add(100)
  expect(latency.mean()).toBe(100)
  for (let call = 0; call < 100; call++) latency.add(5)
  expect(latency.mean()).toBeCloseTo(5, 1)
})

test('hedges after the p95 of the method, once enough calls were seen', () => {
  const hedging = createHedging(() => Number.POSITIVE_INFINITY)
  expect(hedging.begin('eth_call')).toBe(Number.POSITIVE_INFINITY)
  for (let call = 1; call <= 100; call++) hedging.add('eth_call', call)
  expect(hedging.begin('eth_call')).toBe(96)
  expect(hedging.begin('eth_getLogs')).toBe(Number.POSITIVE_INFINITY)
  for (let call = 1; call <= 100; call++) hedging.add('eth_chainId', 1)
  expect(hedging.begin('eth_chainId')).toBe(10)
})

test('the extra calls are at most a tenth', () => {
  const hedging = createHedging(() => Number.POSITIVE_INFINITY)
  let hedged = 0
  for (let call = 0; call < 10_000; call++) {
    hedging.begin('eth_call')
    if (hedging.take()) hedged++
  }
  expect(hedged).toBeLessThanOrEqual(1_000)
  expect(hedged).toBeGreaterThan(990)
})

test('what is learned of methods is bounded', () => {
  const hedging = createHedging(() => Number.POSITIVE_INFINITY)
  for (let method = 0; method < 1_000; method++)
    for (let call = 0; call < 20; call++) hedging.add(`eth_${method}`, 50)
  const known = Array.from({ length: 1_000 }, (_, method) => hedging.begin(`eth_${method}`))
  expect(known.filter(Number.isFinite)).toHaveLength(256)
})
