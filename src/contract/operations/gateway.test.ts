import { expect, test } from 'vitest'
import {
  httpMethods,
  notificationLimit,
  subscriptionNames,
  webSocketMethods,
} from '../../../test/spec/gateway-methods.ts'
import { notificationBuffer, rpcMethods, subscriptions } from './gateway.ts'

const tableOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => line.replace(/ \(.*\) /, ': '))

const ours = (transport: 'http' | 'ws') =>
  rpcMethods
    .filter((method) => method.transport === transport && !method.extension)
    .map(({ name, result }) => `${name}: ${result}`)

test('has the 28 methods of HTTP with their results', () => {
  expect(ours('http')).toEqual(tableOf(httpMethods))
  expect(ours('http').length).toBe(28)
})

test('has the 7 methods of filters and subscriptions', () => {
  expect(ours('ws')).toEqual(tableOf(webSocketMethods))
  expect(ours('ws').length).toBe(7)
})

test('has every name once', () => {
  const specified = rpcMethods.filter(({ extension }) => !extension)
  expect(new Set(specified.map(({ name }) => name)).size).toBe(35)
  expect(new Set(rpcMethods.map(({ name }) => name)).size).toBe(rpcMethods.length)
})

test('has optional parameters only at the end', () => {
  for (const { params } of rpcMethods) {
    const firstOptional = params.findIndex(({ optional }) => optional)
    if (firstOptional >= 0)
      expect(params.slice(firstOptional).every((one) => one.optional)).toBe(true)
  }
})

test('has the subscriptions and the buffer', () => {
  expect(subscriptions).toEqual(subscriptionNames)
  expect(notificationBuffer).toBe(notificationLimit)
})
