import { chmod, chown, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Document, parseDocument } from 'yaml'
import { checkConfig } from '../../app/config/load.ts'
import { readConnectionFile } from '../call/target.ts'
import { CliError } from '../cli-error.ts'
import { configSource, readConfig } from '../configuration.ts'
import { type GlobalOptions, note, print, type Shell } from '../shell.ts'
import { askReload, outcomeText, refusalText } from './reload.ts'

/**
 * Changes the configuration file. The change is checked before it is written, as a whole and with the rights of the
 * file; comments stay. A service that runs reads it at once, and the file is as before when it refuses.
 */
export async function editConfig(
  shell: Shell,
  options: GlobalOptions,
  edit: (document: Document) => void,
): Promise<void> {
  const { file } = readConfig(shell, options).source
  if (file === undefined)
    throw new CliError(
      'There is no configuration file. Begin one with "portolan init" or "portolan config example".',
    )
  // The file itself and not a link to it: a rename would replace the link.
  const path = await realpath(file)
  const before = await readFile(path, 'utf8')
  const document = parseDocument(before, { stringKeys: true })
  edit(document)
  // Long values stay on one line, as they were written.
  const text = document.toString({ lineWidth: 0 })
  await checkDraft(shell, options, path, text)
  await replaceFile(path, text)
  const admin_url = await findService(shell, options)
  if (admin_url === undefined) {
    print(shell, `${file} is changed. The next start of the service reads it.`)
    return
  }
  const outcome = await askReload(admin_url).catch((error: unknown) => {
    note(shell, `${file} is changed, and the next start of the service reads it.`)
    throw error
  })
  if (outcome.outcome === 'refused') {
    await replaceFile(path, before)
    throw new CliError(refusalText(outcome))
  }
  print(shell, outcomeText(outcome))
}

/** The operator's address of a running service; undefined when none runs or it takes no reload. */
async function findService(shell: Shell, options: GlobalOptions): Promise<string | undefined> {
  const connection = await readConnectionFile(shell, options).catch((error: unknown) => {
    if (error instanceof CliError) return undefined
    throw error
  })
  return connection?.admin_url
}

/** Refuses a text that is not a valid configuration at the place of the file. */
async function checkDraft(
  shell: Shell,
  options: GlobalOptions,
  path: string,
  text: string,
): Promise<void> {
  // In the same folder, because relative paths in the file are relative to it.
  const draft = draftOf(path, 'check')
  await writeFile(draft, text, { mode: 0o600 })
  try {
    const problems = checkConfig(configSource(shell, { ...options, config: draft }))
    const name = basename(path)
    if (problems.length > 0)
      throw new CliError(
        problems.map(({ message }) => message.replaceAll(basename(draft), name)).join('\n'),
      )
  } finally {
    await rm(draft, { force: true })
  }
}

async function replaceFile(path: string, text: string): Promise<void> {
  const { mode, uid, gid } = await stat(path)
  const draft = draftOf(path, 'new')
  await writeFile(draft, text, { mode: 0o600 })
  // Only root may give a file to another user.
  await chown(draft, uid, gid).catch(() => {})
  await chmod(draft, mode & 0o7777)
  await rename(draft, path)
}

const draftOf = (path: string, what: string): string =>
  join(dirname(path), `.${basename(path)}.${process.pid}.${what}`)
