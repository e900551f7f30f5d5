import { variantServices, variantsOf } from '../app/config/sections/chains.ts'
import type { Service } from '../contract/variant.ts'
import { readConfig } from './configuration.ts'
import type { GlobalOptions, Shell } from './shell.ts'

/** A chain of the configuration, for commands that take the name of one. */
export type ConfiguredChain = {
  name: string
  services: readonly Service[]
  /** The networks other than the default one. */
  networks: readonly string[]
}

/** The chains of the configuration that a command would use. */
export const listConfiguredChains = (shell: Shell, options: GlobalOptions): ConfiguredChain[] =>
  Object.entries(readConfig(shell, options).chains).map(([name, settings]) => ({
    name,
    services: variantsOf(name, settings).map((variant) => variantServices[variant]),
    networks: Object.keys(settings.networks).filter((one) => one !== settings.default_network),
  }))
