// What `portolan start` prints when the service is ready: a banner on a terminal, or the same facts as one log
// line. No key is in either, because terminals and logs are shared; the connection file has them.

import { styleText } from 'node:util'
import { fitLines } from '../lib/fit-lines.ts'
import type { App } from './app.ts'
import type { Demo } from './bootstrap.ts'
import type { ChainRow } from './embedded/chain-rows.ts'

/** What a person or a log wants to know of a service that is ready. No key is in it. */
export type BannerFacts = {
  version: string
  ready_seconds: number
  base_url: string
  ws_url: string
  admin_url?: string
  docs_url: string
  openapi_url: string
  database: 'embedded' | 'server'
  data_dir: string
  connection_file: string
  config_file?: string
  organization_id?: string
  /** The networks that are not tracked, and why. */
  untracked?: readonly string[]
  /** The local chains that could not be started, and why. */
  not_running?: Readonly<Record<string, string>>
}

/** Gathers the facts of a running service. */
export const bannerFacts = (
  app: Pick<
    App,
    'base_url' | 'ws_url' | 'admin_url' | 'database' | 'dataDir' | 'connectionFile' | 'demo'
  >,
  options: {
    version: string
    seconds: number
    configFile: string | undefined
    untracked?: readonly string[]
    notRunning?: Readonly<Record<string, string>> | undefined
  },
): BannerFacts => ({
  version: options.version,
  ready_seconds: Number(options.seconds.toFixed(2)),
  base_url: app.base_url,
  ws_url: app.ws_url,
  ...(app.admin_url !== undefined && { admin_url: app.admin_url }),
  docs_url: `${app.base_url}/docs`,
  openapi_url: `${app.base_url}/openapi.json`,
  database: app.database,
  data_dir: app.dataDir,
  connection_file: app.connectionFile,
  ...(options.configFile !== undefined && { config_file: options.configFile }),
  ...(app.demo && { organization_id: app.demo.organization_id }),
  ...(options.untracked?.length && { untracked: options.untracked }),
  ...(options.notRunning &&
    Object.keys(options.notRunning).length > 0 && { not_running: options.notRunning }),
})

// Colours only mark words; the text is complete without them.
const bold = (text: string) => styleText('bold', text)
const dim = (text: string) => styleText('dim', text)

// Where the text begins, after the title of a line.
const indent = 12

/** A text with its title, broken at spaces. A path or an address is never broken: it has a line of its own. */
const titled = (title: string, pieces: readonly string[], columns: number, separator?: string) =>
  fitLines(pieces, columns - indent, separator).map(
    (text, at) => `  ${(at === 0 ? title : '').padEnd(indent - 2)}${text}`,
  )

/** The facts for a terminal, and what to try first. */
export function bannerText(
  facts: BannerFacts,
  // `flags` is what another command needs to find this service.
  {
    demo,
    flags = '',
    chains = [],
    sign_in_url,
    notice,
    columns = 80,
  }: {
    demo: Demo | undefined
    flags?: string
    chains?: readonly ChainRow[]
    /** Works once and expires soon, so that it may be shown on a terminal. */
    sign_in_url?: string | undefined
    /** Why there are no local chains. */
    notice?: string | undefined
    /** The width of the terminal. */
    columns?: number
  },
): string {
  const { base_url } = facts
  const command = `npx portolan${flags}`
  const line = (title: string, ...pieces: string[]) => titled(title, pieces, columns, '  ')
  const database =
    facts.database === 'embedded' ? 'embedded PostgreSQL' : 'PostgreSQL of the configuration'
  // A hint of the key identifies the account without giving access to it.
  const organization = demo
    ? [
        '',
        ...line('Account', `organization "demo", key ${hint(demo.admin.api_key)}`),
        ...titled('', ['keys and secrets are in', facts.connection_file], columns),
      ]
    : []
  return [
    '',
    `  ${bold(`Portolan ${facts.version}`)}   ${dim(`ready in ${facts.ready_seconds.toFixed(1)} s`)}`,
    '',
    ...(sign_in_url
      ? line('Console', bold(sign_in_url), dim('signs in once, within 15 minutes'))
      : []),
    ...line('API', `${bold(base_url)}/v1/{service}/{Operation}`),
    ...line('Docs', facts.docs_url),
    ...line('Probes', `${base_url}/health`, '/ready', '/status'),
    ...(facts.admin_url ? line('Operator', `${facts.admin_url}/status`, '/metrics') : []),
    '',
    ...chainTable(chains, columns),
    ...warnings(
      [
        ...(facts.untracked ?? []).map((text) => `Not tracked: ${text}`),
        ...(notice === undefined ? [] : [notice]),
      ],
      columns,
    ),
    ...line('Config', facts.config_file ?? 'none: everything is embedded'),
    ...line('Database', database),
    ...line('Data', facts.data_dir),
    ...organization,
    '',
    ...thingsToTry({ base_url, command, demo, chains }).flatMap((words, index) =>
      commandLines(index === 0 ? 'Try' : '', words, columns),
    ),
    '',
    dim('  Ctrl-C stops the service and keeps the data.'),
    '',
  ].join('\n')
}

/** A command that can be copied as a whole: a line that continues ends with a backslash. */
const commandLines = (title: string, { words, comment }: Command, columns: number): string[] => {
  const isShort = words.join(' ').length <= columns - indent
  const pieces = isShort ? [words.join(' ')] : words
  const lines = fitLines(pieces, columns - indent - 4).map((text, at, { length }) =>
    [at === 0 ? '' : '  ', text, at === length - 1 ? '' : ' \\'].join(''),
  )
  const last = lines.pop() as string
  const full =
    comment === undefined ? [last] : fitLines([last, dim(`# ${comment}`)], columns - indent, '   ')
  return [...lines, ...full].map(
    (text, at) => `  ${(at === 0 ? title : '').padEnd(indent - 2)}${text}`,
  )
}

function chainTable(chains: readonly ChainRow[], columns: number): string[] {
  if (chains.length === 0) return []
  const row = (chain: string, node: string, block: string, url: string) =>
    `  ${chain.padEnd(10)}${node.padEnd(28)}${block.padStart(6)}   ${url}`
  const before = row('', '', '', '').length
  return [
    dim(row('Chain', 'Node', 'Block', 'Its own address')),
    // The reason why a chain is not running is a sentence.
    ...chains.flatMap(({ chain, node, block, url }) =>
      fitLines(url.split(' '), columns - before).map((text, at) =>
        at === 0 ? row(chain, node, block, text) : `${' '.repeat(before)}${text}`,
      ),
    ),
    '',
  ]
}

function warnings(texts: readonly string[], columns: number): string[] {
  if (texts.length === 0) return []
  const lines = texts.flatMap((text) => fitLines(text.split(' '), columns - 2))
  return [...lines.map((text) => styleText('yellow', `  ${text}`)), '']
}

/** The words of a command, each of which stays whole, and what it is for. */
type Command = { words: readonly string[]; comment?: string }

function thingsToTry(options: {
  base_url: string
  command: string
  demo: Demo | undefined
  chains: readonly ChainRow[]
}): Command[] {
  const { base_url, command, demo, chains } = options
  const words = (text: string, ...more: string[]) => ({ words: [...text.split(' '), ...more] })
  // What helps depends on what is there: without a demo the operator has keys of its own.
  if (!demo)
    return [
      words(`curl ${base_url}/status`),
      words(`${command} organizations list`),
      words('npx portolan call --list'),
    ]
  if (chains.length === 0)
    return [
      words(`curl ${base_url}/status`),
      words(`${command} call admin GetOrganizationByDomain`, `'{"domain":"demo"}'`),
      words('npx portolan call --list'),
    ]
  const service = (chains.find(({ chain }) => chain !== 'Q') ?? chains[0])?.chain.toLowerCase()
  return [
    words(`${command} call ${service} ListWallets`),
    { ...words(`${command} faucet ${service} <address>`), comment: 'then watch it arrive' },
    { ...words(`${command} init`), comment: 'to use nodes of your own' },
  ]
}

/** Enough of a key to recognise it, too little to use it. */
const hint = (api_key: string) => `${api_key.slice(0, 8)}…`
