import { secretOverlapHours } from '../../contract/limits.ts'
import { setWebhookSecret } from '../../storage/webhooks/webhooks.ts'
import type { WalletHandler } from '../context.ts'
import { readScope } from '../wallets/scope.ts'
import { getWebhook, getWebhookToChange } from './get-webhook.ts'
import { createSecret, formatSecret, packSecrets, secretContext, unpackSecrets } from './secret.ts'

const overlapMs = secretOverlapHours * 3_600_000
// Each makes the signature header longer; more rotations in a day are not expected.
const maxEarlier = 8

/** Reads the secret with which a webhook signs. */
export const GetWebhookSigningSecret: WalletHandler<'GetWebhookSigningSecret'> = async (
  context,
  { webhook_id },
) => {
  const scope = await readScope(context)
  const { secret_sealed } = await getWebhook(context.db, scope, webhook_id)
  const secret = context.sealer.open(secret_sealed, secretContext(webhook_id))
  return { signing_secret: formatSecret(secret) }
}

/** Gives a webhook a new secret. Those before it sign too, each for a day, so that receivers can follow. */
export const RotateWebhookSigningSecret: WalletHandler<'RotateWebhookSigningSecret'> = async (
  context,
  { webhook_id },
) => {
  const scope = await readScope(context)
  const { secret, secret_sealed } = createSecret(context, webhook_id)
  const now = context.clock.now()
  await context.db.transaction().execute(async (trx) => {
    const row = await getWebhookToChange(trx, scope, webhook_id)
    const open = (sealed: Buffer) => context.sealer.open(sealed, secretContext(webhook_id))
    const until = now + overlapMs
    const before = row.previous_secret_sealed
      ? unpackSecrets(open(row.previous_secret_sealed), row.previous_secret_expire_time)
      : []
    // Receivers may have any of them: a second rotation does not cut the first one's day short.
    const earlier = [
      { secret: open(row.secret_sealed), until },
      ...before.filter((known) => known.until > now),
    ].slice(0, maxEarlier)
    await setWebhookSecret(trx, {
      webhook_id,
      secret_sealed,
      previous_secret_sealed: context.sealer.seal(packSecrets(earlier), secretContext(webhook_id)),
      previous_secret_expire_time: new Date(until),
      update_time: new Date(now),
    })
  })
  return { signing_secret: formatSecret(secret) }
}
