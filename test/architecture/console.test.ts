import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { roleFor as roleOfConsole } from '../../console/src/lib/roles.ts'
import { rpcExamples } from '../../console/src/lib/rpc.ts'
import { roleFor } from '../../src/contract/access.ts'
import { catalogue } from '../../src/contract/operations/catalogue.ts'
import { rpcMethods } from '../../src/contract/operations/gateway.ts'

const root = join(import.meta.dirname, '../../console/src')
// The snippets of receivers import what receivers need.
const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter(
    (name) =>
      /(?<!\.test|\.d)\.tsx?$/.test(name) &&
      !name.endsWith('receivers.ts') &&
      !name.endsWith('snippets.ts'),
  )
  .map((name) => ({ name, text: readFileSync(join(root, name), 'utf8') }))

test('the console shows each operation to the roles that may call it', () => {
  for (const entry of catalogue)
    expect([entry.name, roleOfConsole(entry.name)]).toEqual([entry.name, roleFor(entry)])
})

test('the JSON-RPC playground has an example of every method', () => {
  const methods = rpcMethods.map(({ name }) => name.replace(/^evm_/, 'eth_'))
  // The specification does not list it, and every client calls it.
  expect(rpcExamples.map(({ method }) => method).toSorted()).toEqual(
    [...methods, 'eth_chainId'].toSorted(),
  )
})

test('the console imports the client, its own files and its libraries only', () => {
  // `virtual:` modules are the documents of the project, made by the build.
  const packages =
    /^(?:preact(?:\/hooks)?|@preact\/signals|uplot(?:\/.*)?|@portolan\/client|virtual:guide(?:-search)?)$/
  const others = sources.flatMap(({ name, text }) =>
    [...text.matchAll(/^(?:import|\} from) (?:[^'\n]* from )?'([^'\n]+)'/gm)]
      .map(([, path]) => path ?? '')
      .filter((path) => !path.startsWith('.') && !packages.test(path))
      .map((path) => `${name}: ${path}`),
  )
  expect(others).toEqual([])
})

test('no text becomes markup or code in the console', () => {
  const dangerous = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/
  const found = sources.filter(({ text }) => dangerous.test(text)).map(({ name }) => name)
  expect(found).toEqual([])
})
