import { hasWallets, isEvm } from '../lib/chains.ts'
import type { Account } from '../lib/session.ts'

/** A link of the navigation; `section` is the first part of the addresses below it. */
export type NavigationItem = { title: string; to: string; section: string }

/** The pages that an account can use, in groups. */
export function navigationOf(account: Account): { title: string; items: NavigationItem[] }[] {
  const { chains, may, isEmbedded } = account
  const item = (title: string, to: string): NavigationItem => ({
    title,
    to,
    section: to.split('/')[0] ?? '',
  })
  const groups = [
    {
      title: 'Watch',
      items: [
        item('Overview', ''),
        ...(chains.some(hasWallets)
          ? [item('Wallets', 'wallets'), item('Webhooks', 'webhooks')]
          : []),
        ...(chains.some((chain) => isEvm(chain) && hasWallets(chain))
          ? [item('Transactions', 'transactions')]
          : []),
      ],
    },
    {
      title: 'Build',
      items: [
        item('API playground', 'playground'),
        ...(chains.some(isEvm) ? [item('Gateway', 'gateway')] : []),
        ...(isEmbedded ? [item('Local chains', 'local')] : []),
      ],
    },
    {
      title: 'Administer',
      items: [
        ...(may('ListOrganizations') ? [item('Organizations', 'organizations')] : []),
        ...(may('ListCredentials') ? [item('Keys', 'keys')] : []),
        item('Limits and usage', 'usage'),
        item('Audit log', 'audit'),
      ],
    },
  ]
  return groups.filter(({ items }) => items.length > 0)
}
