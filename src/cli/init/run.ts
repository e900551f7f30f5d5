// `portolan init`. Nodes are asked before the file is written, but one that does not answer is written with a note: the
// file may be made before the node runs.

import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { CliError, usageError } from '../cli-error.ts'
import { type GlobalOptions, isWatched, note, print, type Shell } from '../shell.ts'
import { type Answers, type CheckedNode, chainKinds, type InitTag, urlProblem } from './answers.ts'
import { checkNode } from './check-node.ts'
import { initYaml } from './yaml.ts'

type InitOptions = GlobalOptions &
  Partial<Record<InitTag, string[]>> & { database?: string; output: string; force?: boolean }

/** Gathers what is needed by options or by questions, and writes the file. */
export async function runInit(
  shell: Shell,
  options: InitOptions,
  words: readonly string[] = [],
): Promise<void> {
  const file = resolve(shell.cwd, options.output)
  if (existsSync(file) && !options.force)
    throw new CliError(`${options.output} already exists; use --force to overwrite.`)
  const answers = await gather(shell, options, words)
  if (!answers) return note(shell, 'Nothing was written.')
  // For the owner only: addresses of providers often contain an access key.
  await writeFile(file, initYaml(answers), { mode: 0o600 })
  const isFound = file === resolve(shell.cwd, 'portolan.yaml')
  const flags = isFound ? '' : ` --config ${options.output}`
  print(shell, `${options.output} is written. Start with "portolan start${flags}".`)
}

async function gather(
  shell: Shell,
  options: InitOptions,
  words: readonly string[],
): Promise<Answers | undefined> {
  const named = words.length > 0 ? await import('./named-chains.ts') : undefined
  const namedUrls = named?.readNamedUrls(words)
  const tags = (Object.keys(chainKinds) as InitTag[]).filter((tag) => options[tag] !== undefined)
  if (tags.length === 0 && !namedUrls) {
    if (!isWatched(shell.stdout, shell.env) || !shell.stdin.isTTY)
      throw usageError(
        'Without a terminal, pass the nodes as options, such as --c http://127.0.0.1:8545.',
      )
    // The library of questions is loaded where they are asked, and by no other command.
    const { askAnswers } = await import('./questions.ts')
    return await askAnswers()
  }
  const problem = tags
    .flatMap((tag) => (options[tag] ?? []).map((url) => urlProblem(tag, url)))
    .find((text) => text !== undefined)
  if (problem !== undefined) throw usageError(problem)
  const chains: Answers['chains'] = {}
  for (const tag of tags) {
    chains[tag] = await Promise.all((options[tag] ?? []).map((url) => checkNode(tag, url)))
    for (const { url, chain_id, problem } of chains[tag])
      note(
        shell,
        problem === undefined
          ? `✓ ${tag} ${new URL(url).host}${chain_id === undefined ? '' : ` is on chain ${chain_id}`}`
          : `! ${tag} ${new URL(url).host} does not answer: ${problem}`,
      )
    checkOneChain(tag, chains[tag])
  }
  const byName = namedUrls && (await named?.nameChains(namedUrls, (line) => note(shell, line)))
  for (const [name, { networks }] of Object.entries(byName ?? {}))
    for (const { nodes } of Object.values(networks)) checkOneChain(name, nodes)
  return {
    chains,
    ...(byName && { named: byName }),
    ...(options.database !== undefined && { database: options.database }),
  }
}

/** Two nodes of different chains in one network would be used as one chain. */
function checkOneChain(tag: string, nodes: readonly CheckedNode[]): void {
  const ids = new Set(nodes.flatMap(({ chain_id }) => (chain_id === undefined ? [] : [chain_id])))
  if (ids.size > 1)
    throw new CliError(`The nodes of ${tag} are on different chains: ${[...ids].join(', ')}.`)
}
