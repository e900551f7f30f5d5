import { readFileSync, writeFileSync } from 'node:fs'
import { runTolkCompiler } from '@ton/tolk-js'

const folder = new URL('./contracts/', import.meta.url)

/** Compiles the contracts of the development chain; the code of each as base64 of its cells. */
export async function compileContracts(): Promise<Record<string, string>> {
  const codes: Record<string, string> = {}
  for (const name of ['purse', 'jetton-master', 'jetton-holder']) {
    const compiled = await runTolkCompiler({
      entrypointFileName: `${name}.tolk`,
      fsReadCallback: (path) => readFileSync(new URL(path, folder), 'utf8'),
    })
    if (compiled.status === 'error') throw new Error(`${name}: ${compiled.message}`)
    codes[name] = compiled.codeBoc64
  }
  return codes
}

if (import.meta.main)
  writeFileSync(
    new URL('contract-code.json', folder),
    `${JSON.stringify(await compileContracts(), null, 2)}\n`,
  )
