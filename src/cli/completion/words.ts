import { catalogue } from '../../contract/operations/catalogue.ts'
import { type ConfiguredChain, listConfiguredChains } from '../configured-chains.ts'
import { type GlobalOptions, print, type Shell } from '../shell.ts'

/** The commands whose first argument is a chain. */
export const chainCommands = ['call', 'backfill', 'rewind', 'listen'] as const

/** Prints what may follow these words according to the configuration, one word per line, for completion scripts. */
export function printWords(shell: Shell, words: readonly string[], options: GlobalOptions): void {
  const [command, at, ...rest] = words
  // Only the first argument is a chain; the second one of `call` is an operation.
  if (!chainCommands.some((name) => name === command) || rest.length > 0) return
  let chains: ConfiguredChain[] = []
  try {
    chains = listConfiguredChains(shell, options)
  } catch {
    // A shell that completes has no place for an error of the configuration.
  }
  const found =
    at === undefined
      ? chains.flatMap(({ name, networks }) => [name, ...networks.map((one) => `${name}/${one}`)])
      : command === 'call'
        ? operationsOf(chains, at)
        : []
  if (found.length > 0) print(shell, found.join('\n'))
}

const operationsOf = (chains: readonly ConfiguredChain[], at: string): string[] => {
  const [chain] = at.split('/')
  const services = chains.find(({ name }) => name === chain)?.services ?? []
  return catalogue
    .filter(({ service }) => services.some((one) => one === service))
    .map(({ name }) => name)
}
