import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { freshFolder } from './portolan.ts'

const folder = join(import.meta.dirname, '../../examples')
const examples = readdirSync(folder).filter((name) => name !== 'connection.ts')
const cwd = await freshFolder()
const run = (name: string, ...args: string[]) => {
  const program = [join(folder, name), ...args]
  const { status, stderr } = spawnSync(process.execPath, program, { cwd, encoding: 'utf8' })
  return { status, stderr }
}

test.each(examples)('%s asks for a service where none runs', (name) => {
  expect(run(name)).toEqual({
    status: 1,
    stderr:
      'There is no .data/connection.json here. Run "npm start" in this folder first, and keep it running.\n',
  })
})

test.each(examples)('%s explains its arguments when they are wrong', (name) => {
  const { status, stderr } = run(name, 'x')
  expect([status, stderr]).toEqual([2, expect.stringMatching(/^.*Usage: .*\n$/)])
})
