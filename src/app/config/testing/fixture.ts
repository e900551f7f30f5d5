// Helpers of the configuration tests. Production code does not import this folder.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type LoadOptions, loadConfig } from '../load.ts'
import { ConfigError } from '../problem.ts'
import type { Config } from '../schema.ts'

/** A folder of its own for a test, removed at the end of the block. */
export const temporaryFolder = (): { path: string } & Disposable => {
  // Not where TMPDIR says: messages shorten a long path.
  const path = mkdtempSync('/tmp/portolan-config-')
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** A file with one chain of one node. */
export const oneChain = `
chains:
  c:
    networks:
      mainnet:
        upstreams:
          - url: https://node.example.org/v3/abc
`

/** Loads a configuration whose file is this text. */
export const loadText = (text: string, options: Partial<LoadOptions> = {}): Config => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'portolan.yaml'), text)
  return loadConfig({ env: {}, cwd: folder.path, ...options })
}

/** What is wrong with a configuration, as sentences. */
export const sentencesOf = (load: () => unknown): string[] => {
  try {
    load()
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(({ message }) => message)
    throw error
  }
}
