import { setWebhookSecret } from '../../storage/webhooks.ts'
import { readScope, shared } from '../wallets/scope.ts'
import { getWebhook, getWebhookToChange } from './get-webhook.ts'
import { createSecret, formatSecret, secretContext } from './secret.ts'

const overlapMs = 86_400_000

/** Reads the secret with which a webhook signs. */
export const GetWebhookSigningSecret = shared<{ webhook_id: string }>(
  async (context, { webhook_id }) => {
    const scope = await readScope(context)
    const { secret_sealed } = await getWebhook(context.db, scope, webhook_id)
    const secret = context.sealer.open(secret_sealed, secretContext(webhook_id))
    return { signing_secret: formatSecret(secret) }
  },
)

/** Gives a webhook a new secret. The one before signs too for a day, so that receivers can follow. */
export const RotateWebhookSigningSecret = shared<{ webhook_id: string }>(
  async (context, { webhook_id }) => {
    const scope = await readScope(context)
    const { secret, secret_sealed } = createSecret(context, webhook_id)
    const now = context.clock.now()
    await context.db.transaction().execute(async (trx) => {
      await getWebhookToChange(trx, scope, webhook_id)
      const until = new Date(now + overlapMs)
      await setWebhookSecret(trx, { webhook_id, secret_sealed, until, update_time: new Date(now) })
    })
    return { signing_secret: formatSecret(secret) }
  },
)
