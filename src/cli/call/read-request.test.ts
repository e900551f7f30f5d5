import { Readable, Writable } from 'node:stream'
import { expect, test } from 'vitest'
import type { Shell } from '../shell.ts'
import { readRequest } from './read-request.ts'

const shell = (input = ''): Shell => ({
  env: {},
  cwd: '/',
  setExitCode: () => {},
  stdin: Readable.from([input]),
  stdout: new Writable(),
  stderr: new Writable(),
})

test('numbers are sent as they were written', async () => {
  const text = '{"a":9007199254740993,"b":[1.10,-0,1e400],"c":"1","d":{"e":null}}'
  expect(JSON.stringify(await readRequest(shell(), text))).toBe(text)
})

test('nothing is an empty request', async () => {
  expect(await readRequest(shell(), undefined)).toEqual({})
  expect(await readRequest(shell('  \n'), '-')).toEqual({})
})

test.each(['1', '"text"', 'null', '[]', 'true'])('%s is no request', async (text) => {
  await expect(readRequest(shell(), text)).rejects.toMatchObject({ exitCode: 2 })
})

test('says where the bad JSON is', async () => {
  await expect(readRequest(shell('{'), '-')).rejects.toThrow('The standard input is not JSON')
  await expect(readRequest(shell(), '{a}')).rejects.toThrow('The request is not JSON')
  await expect(readRequest(shell(), '@nowhere')).rejects.toThrow('/nowhere cannot be read (ENOENT)')
})
