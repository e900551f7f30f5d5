// Where the service that runs beside an example is, and the keys of its demo account.
import { readFileSync } from 'node:fs'

const file = '.data/connection.json'

/** Reads what `npm start` wrote; without a service the example ends with a sentence. */
export function readConnection() {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    console.error(
      `There is no ${file} here. Run "npm start" in this folder first, and keep it running.`,
    )
    process.exit(1)
  }
}
