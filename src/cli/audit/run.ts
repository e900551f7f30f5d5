import { open } from 'node:fs/promises'
import { resolve } from 'node:path'
import { countPendingEvents, findAuditChain, readAuditEvents } from '../../storage/audit/audit.ts'
import type { ChainPlace } from '../../storage/audit/hash.ts'
import { type ChainEnds, type Verified, verifyChain } from '../../storage/audit/verify.ts'
import type { Db } from '../../storage/pg/database.ts'
import { CliError, usageError } from '../cli-error.ts'
import { type GlobalOptions, note, print, printJson, type Shell } from '../shell.ts'
import { withDatabase } from '../storage/with-database.ts'
import { formatEnds, formatEvent, parseEnds, parseEvent } from './lines.ts'

type Options = GlobalOptions & { json?: boolean }
type VerifyOptions = Options & { head?: string[]; file?: string; publicKey?: string }

/** Prints the head. */
export const showHead = (shell: Shell, options: Options): Promise<void> =>
  withDatabase(shell, options, async ({ db }) => {
    const chain = await getChain(db)
    const head = placeText({ sequence: chain.head_sequence, hash: chain.head_hash })
    if (!options.json) return print(shell, head)
    printJson(shell, {
      head,
      head_time: chain.head_time.toISOString(),
      head_signature: chain.head_signature.toString('base64'),
      public_key: chain.public_key.toString('base64'),
    })
  })

/** Verifies the log of the database, or an export. */
export async function verifyLog(shell: Shell, options: VerifyOptions): Promise<void> {
  const known = (options.head ?? []).map(parsePlace)
  if (options.file !== undefined)
    return report(shell, await verifyFile(shell, options.file, known, options), options)
  // One snapshot: the service may append or prune while the chain is read.
  await withDatabase(shell, options, async ({ db }) => {
    const verified = await inSnapshot(db, async (trx) => {
      const chain = await getChain(trx)
      checkKey(chain, options)
      return await verifyChain(chain, readAuditEvents(trx, { after: chain.anchor_sequence }), known)
    })
    // Outside of the snapshot, because it is a count for information only.
    const waiting = await countPendingEvents(db)
    if (waiting > 0) note(shell, `Not in the chain yet: ${waiting} events. The service adds them.`)
    report(shell, verified, options)
  })
}

/** Prints the whole log. */
export const exportLog = (shell: Shell, options: Options): Promise<void> =>
  withDatabase(shell, options, ({ db }) =>
    inSnapshot(db, async (trx) => {
      const chain = await getChain(trx)
      await printLine(shell, formatEnds(chain))
      for await (const event of readAuditEvents(trx, { after: chain.anchor_sequence }))
        await printLine(shell, formatEvent(event))
      const head = placeText({ sequence: chain.head_sequence, hash: chain.head_hash })
      note(shell, `The head is ${head}. Keep it in another place than the database.`)
    }),
  )

async function verifyFile(
  shell: Shell,
  file: string,
  known: readonly ChainPlace[],
  options: VerifyOptions,
): Promise<Verified> {
  const path = resolve(shell.cwd, file)
  // Closed at the end of the function, also when a line is not valid.
  await using opened = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw usageError(`The file ${path} cannot be read (${error.code}).`)
  })
  const lines = opened.readLines()[Symbol.asyncIterator]()
  const first = await lines.next()
  const ends = parseEnds(first.done ? '' : first.value)
  checkKey(ends, options)
  const events = async function* () {
    // The first line of an export has the ends of the chain.
    for (let number = 2; ; number++) {
      const line = await lines.next()
      if (line.done) return
      yield parseEvent(line.value, number)
    }
  }
  return await verifyChain(ends, events(), known)
}

function report(shell: Shell, verified: Verified, { json }: Options): void {
  const { count, erased, head, broken } = verified
  // For scripts: a broken chain is a result of the command and not an error of it.
  if (broken) shell.setExitCode(1)
  if (json) printJson(shell, { count, erased, head: placeText(head), broken: broken ?? null })
  else print(shell, describe(verified))
}

function describe({ count, erased, head, broken }: Verified): string {
  if (broken)
    return `Broken at event ${broken.sequence}: ${broken.problem}. ${count} events before it are intact.`
  const without =
    erased > 0 ? ` The details of ${erased} were erased with their organizations.` : ''
  return `${count} events are intact.${without}\nHead ${placeText(head)}`
}

const inSnapshot = <result>(db: Db, work: (trx: Db) => Promise<result>): Promise<result> =>
  db.transaction().setIsolationLevel('repeatable read').execute(work)

async function getChain(db: Db) {
  const chain = await findAuditChain(db)
  if (!chain) throw new CliError('There is no audit log yet: the service begins it when it runs.')
  return chain
}

function checkKey({ public_key }: ChainEnds, { publicKey }: VerifyOptions): void {
  if (publicKey !== undefined && public_key.toString('base64') !== publicKey)
    throw new CliError(`The chain is signed with another key: ${public_key.toString('base64')}`)
}

const placeText = ({ sequence, hash }: ChainPlace): string => `${sequence}:${hash.toString('hex')}`

function parsePlace(text: string): ChainPlace {
  const [, sequence, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim()) ?? []
  if (!sequence || !hash)
    throw usageError(`--head must be as "portolan audit head" prints it, not "${text}".`)
  return { sequence: Number(sequence), hash: Buffer.from(hash, 'hex') }
}

/** A reader that is slow keeps the export waiting, not the memory full. */
const printLine = (shell: Shell, line: string): Promise<void> =>
  new Promise((done) => {
    if (shell.stdout.write(`${line}\n`)) done()
    else shell.stdout.once('drain', done)
  })
