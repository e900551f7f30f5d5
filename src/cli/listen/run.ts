import { createClient } from '../../../client/src/client.ts'
import { PortolanError } from '../../../client/src/error.ts'
import { problemText } from '../call/run.ts'
import { chooseTarget, type TargetOptions } from '../call/target.ts'
import { type ChainName, chainText, readChain } from '../chain-tools.ts'
import { CliError, usageError } from '../cli-error.ts'
import { note, print, type Shell } from '../shell.ts'
import { onStopSignal } from '../start/stop-signals.ts'
import { createJournal } from './journal.ts'
import { startReceiver } from './receiver.ts'

/** The options of the command. */
export type ListenOptions = TargetOptions & {
  port: number
  host: string
  endpoint?: string
  confirmation: number
  signingSecret?: string
  answer: number
  json?: boolean
}

type Registered = { secret: string; remove(): Promise<unknown> }

/** Receives deliveries until the command is stopped. */
export async function runListen(
  shell: Shell,
  service: string | undefined,
  options: ListenOptions,
): Promise<void> {
  const at = service === undefined ? undefined : readChain(service)
  if (at && ['admin', 'q'].includes(at.chain)) throw usageError(`${at.chain} has no wallets.`)
  const secrets: string[] = []
  const given = options.signingSecret ?? shell.env.PORTOLAN_SIGNING_SECRET
  if (given) secrets.push(given)
  const journal = createJournal({ secrets, json: options.json === true })
  const receiver = await startReceiver({
    port: options.port,
    host: options.host,
    status: options.answer,
    onDelivery: async (delivery) => print(shell, await journal.enter(delivery)),
  })
  try {
    const endpoint = options.endpoint ?? receiver.url
    note(shell, `Listening on ${receiver.url}. Stop with Ctrl-C.`)
    const registered = at && (await register(shell, at, endpoint, options))
    if (registered) secrets.push(registered.secret)
    else if (secrets.length === 0)
      note(shell, 'No signing secret is given: signatures are not checked.')
    try {
      await stopped()
    } finally {
      // The service would otherwise retry deliveries to a port on which nothing listens.
      await registered?.remove()
    }
  } finally {
    await receiver.stop()
  }
  note(shell, journal.summary())
}

async function register(
  shell: Shell,
  at: ChainName,
  webhook_endpoint: string,
  options: ListenOptions,
): Promise<Registered> {
  const target = await chooseTarget(shell, options, at.chain)
  const operations = createClient(target).chain(at.chain, at.network === undefined ? {} : at)
  try {
    const { confirmation } = options
    const { webhook_id } = await operations.RegisterWebhook({ webhook_endpoint, confirmation })
    const { signing_secret } = await operations.GetWebhookSigningSecret({ webhook_id })
    note(shell, `Registered webhook ${webhook_id} for all wallets of ${chainText(at)}.`)
    return {
      secret: signing_secret,
      // The service may have stopped before us, by the same Ctrl-C.
      remove: () => operations.RemoveWebhook({ webhook_id }).catch(() => {}),
    }
  } catch (error) {
    if (error instanceof PortolanError)
      throw new CliError(problemText(error, target.base_url), { cause: error })
    throw error
  }
}

function stopped(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const off = onStopSignal(process, { first: () => resolve(), again: () => process.exit(130) })
  return promise.finally(off)
}
