import { expect, test } from 'vitest'
import { runKeyCommand } from './data-directory.ts'

test('a command prints the key, without a shell', async () => {
  expect(await runKeyCommand('/bin/echo ab  cd')).toBe('ab cd\n')
  expect(await runKeyCommand('/bin/echo $HOME;id')).toBe('$HOME;id\n')
})

test('a command that fails, is slow or prints too much is refused, and nothing of it is shown', async () => {
  await expect(runKeyCommand('/bin/false')).rejects.toThrow(
    '/bin/false of security.master_key failed',
  )
  await expect(runKeyCommand('/bin/sleep 5', 50)).rejects.toThrow('no answer within 50 ms')
  await expect(runKeyCommand('/usr/bin/env yes secret')).rejects.toThrow(/^(?!.*secret).*failed/)
  await expect(runKeyCommand('echo x')).rejects.toThrow('absolute path')
})
