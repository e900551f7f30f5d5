import { setTimeout as delay } from 'node:timers/promises'
import { countKeyUses, resealAll } from '../../domain/access/reseal.ts'
import { countServicesWithout } from '../../storage/access/key-holders.ts'
import type { Db } from '../../storage/pg/database.ts'
import { audited } from '../audited.ts'
import { CliError } from '../cli-error.ts'
import { withLocal } from '../local.ts'
import { type GlobalOptions, note, print, printJson, type Shell } from '../shell.ts'
import { columnsOf, formatTable } from '../table.ts'

/** Shows the keys and the number of values that each has sealed. */
export const showMasterKeys = (
  shell: Shell,
  options: GlobalOptions & { json?: boolean },
): Promise<void> =>
  withLocal(shell, options, async ({ context: { db, sealer } }) => {
    const uses = await countKeyUses(db)
    const ids = [...new Set([...sealer.key_ids, ...uses.map(({ key_id }) => key_id)])]
    const keys = ids.map((key_id) => ({
      key_id,
      state:
        key_id === sealer.key_id ? 'seals' : sealer.key_ids.includes(key_id) ? 'opens' : 'missing',
      values: uses.reduce((sum, use) => sum + (use.key_id === key_id ? use.count : 0), 0),
    }))
    if (options.json) return printJson(shell, keys)
    const rows = keys.map(({ key_id, state, values }) => [key_id, state, String(values)])
    print(shell, formatTable(['KEY', 'STATE', 'VALUES'], rows, columnsOf(shell.stdout)))
  })

/** Seals all values of earlier keys with the current one, and says what is left. */
export const rotateMasterKey = (shell: Shell, options: GlobalOptions): Promise<void> =>
  withLocal(shell, options, async ({ context: { db, sealer } }) => {
    await awaitServices(shell, db, sealer.key_id)
    const request = { key_id: sealer.key_id }
    const done = await audited(db, { operation: 'master-key rotate', request }, () =>
      resealAll({ db, sealer }),
    )
    const left = (await countKeyUses(db)).filter(({ key_id }) => key_id !== sealer.key_id)
    const count = left.reduce((sum, use) => sum + use.count, 0)
    if (count > 0)
      throw new CliError(
        `${done} values are sealed with ${sealer.key_id} now; ${count} were sealed with another key meanwhile. A service still seals with it: restart all services with the new key first, then run this again.`,
      )
    note(shell, `All values are sealed with ${sealer.key_id} (${done} of them by this run).`)
    const others = sealer.key_ids.filter((key_id) => key_id !== sealer.key_id)
    if (others.length > 0)
      note(shell, `No stored value needs ${others.join(', ')} any more: remove that line.`)
  })

/** Services read their keys every half a minute, and show them a quarter of a minute later at the latest. */
const waitSeconds = 120

/** Waits until every running service opens with the key: another one could not open what is sealed again. */
async function awaitServices(shell: Shell, db: Db, key_id: string): Promise<void> {
  for (let second = 0; ; second++) {
    const count = await countServicesWithout(db, key_id)
    if (count === 0) return
    if (second === 0) note(shell, `Waiting for ${count} running services to read ${key_id}.`)
    if (second >= waitSeconds)
      throw new CliError(
        `${count} running services do not open with ${key_id}, so nothing was changed. Add that key to their master keys. Where the key is a variable, restart them. Then run this again.`,
      )
    await delay(1_000)
  }
}
