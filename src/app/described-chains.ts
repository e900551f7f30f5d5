import type { RoutedChain } from '../http/routes.ts'
import type { DescribedNetwork } from '../storage/tracking/networks.ts'
import type { Config } from './config/schema.ts'
import { type Variant, variantServices, variantsOf } from './config/sections/chains.ts'
import type { ConnectedChain } from './connection-file.ts'

type Chains = Pick<Config, 'chains'>

/** The networks of a configuration as the database describes them. */
export const describedNetworks = ({ chains }: Chains): DescribedNetwork[] =>
  Object.entries(chains).flatMap(([chain, settings]) =>
    Object.keys(settings.networks).map((network) => ({
      ...{ chain, network, is_default: network === settings.default_network },
      variants: variantsOf(chain, settings).join(''),
    })),
  )

/**
 * The chains as addresses name them: those of the configuration, and those that were configured before. What is
 * stored of a removed chain or network can be read at its address.
 */
export function routedChains(
  { chains }: Chains,
  stored: readonly DescribedNetwork[],
): Record<string, RoutedChain> {
  const routed: Record<string, RoutedChain & { networks: string[] }> = Object.fromEntries(
    Object.entries(chains).map(([name, settings]) => [
      name,
      {
        services: servicesOf(variantsOf(name, settings)),
        networks: Object.keys(settings.networks),
        default_network: settings.default_network,
      },
    ]),
  )
  for (const { chain, network, variants, is_default } of stored) {
    // Chain queries read from nodes: without a configuration nothing is left of them.
    const services = servicesOf([...variants]).filter((service) => service !== 'q')
    if (services.length === 0) continue
    const known = Object.hasOwn(routed, chain) ? routed[chain]! : undefined
    if (!known) routed[chain] = { services, networks: [network], default_network: network }
    else if (!known.networks.includes(network)) known.networks.push(network)
    // The configuration decides; the stored default counts only for a chain that is gone from it.
    if (is_default && !Object.hasOwn(chains, chain)) routed[chain]!.default_network = network
  }
  return routed
}

const servicesOf = (letters: readonly string[]): RoutedChain['services'] =>
  letters
    .filter((letter): letter is Variant => Object.hasOwn(variantServices, letter))
    .map((letter) => variantServices[letter])

/** The chains as the connection file lists them. */
export const connectedChains = (
  { chains }: Chains,
  facts: Readonly<Record<string, object>> = {},
): Record<string, ConnectedChain> =>
  Object.fromEntries(
    Object.entries(chains).map(([name, settings]) => [
      name,
      {
        network: settings.default_network,
        networks: Object.keys(settings.networks),
        variant: variantsOf(name, settings).join(''),
        kind: settings.kind,
        ...facts[name],
      },
    ]),
  )
