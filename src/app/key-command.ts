import { execFile } from 'node:child_process'
import { MasterKeyError } from '../storage/access/master-key.ts'

/** Begins a master key that a command prints. */
export const execPrefix = 'exec:'

/**
 * Runs a command that prints the master key, such as the client of a KMS or of Vault. There is no shell:
 * words are separated by spaces. What it prints goes into no message; neither does its error output,
 * which may repeat the key.
 */
export const runKeyCommand = (command: string, timeoutMs = 10_000): Promise<string> => {
  const [file = '', ...args] = command.trim().split(/ +/)
  if (!file.startsWith('/'))
    return Promise.reject(
      new MasterKeyError('The command of security.master_key must be an absolute path.'),
    )
  const limits = { timeout: timeoutMs, maxBuffer: 4_096, killSignal: 'SIGKILL' as const }
  return new Promise((resolve, reject) => {
    execFile(file, args, { ...limits, shell: false }, (error, stdout) => {
      if (!error) return resolve(stdout)
      const why = error.killed ? `gave no answer within ${timeoutMs} ms` : `failed (${error.code})`
      reject(new MasterKeyError(`The command ${file} of security.master_key ${why}.`))
    })
  })
}
