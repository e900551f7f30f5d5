import { coversScope, operationScope } from '../../contract/scopes.ts'
import { isUuid } from '../../lib/ids.ts'
import { searchOrganizations } from '../../storage/access/organizations.ts'
import {
  findAddresses,
  findById,
  findManagedTransactions,
  findTransactions,
  findWalletsByName,
} from '../../storage/wallets/search.ts'
import type { AdminHandler, Context } from '../context.ts'

// A search is for finding one thing; more results are not read by people.
const mostResults = 50

type Result = Awaited<ReturnType<typeof ListSearchResults>>['results'][number]

/** Finds what an organization has on all chains. */
export const ListSearchResults: AdminHandler<'ListSearchResults'> = async (context, request) => {
  const { db, principal } = context
  const { organization_id } = principal
  const query = request.query.trim()
  const places = placesOf(context)
  const byId = new Map(places.map((place) => [place.network_id, place]))
  const searched = { organization_id, network_ids: [...byId.keys()], limit: mostResults }
  const at = (network_id: number) => {
    const { chain, network } = byId.get(network_id)!
    return { chain, network }
  }
  // Every network parses the text in its own form. An EVM address matches on all EVM networks.
  const parsed = places.flatMap(({ network_id, family }) => {
    const address = family.parseAddress(query)
    return address.ok ? [{ network_id, address: address.bytes }] : []
  })
  const hashes = places.flatMap(({ network_id, family }) => {
    const hash = family.parseTransactionHash(query)
    return hash ? [{ network_id, hash }] : []
  })
  // Exact matches first; names, which match in part, come after them.
  const results: Result[] = []
  if (isUuid(query))
    for (const row of await findById(db, searched, query))
      results.push({ ...row, ...at(row.network_id), wallet_id: row.wallet_id ?? '' })
  for (const row of await findAddresses(db, organization_id, parsed)) {
    const id = byId.get(row.network_id)!.family.formatAddress(row.address)
    const { title, wallet_id } = row
    results.push({ kind: 'address', ...at(row.network_id), id, title, wallet_id: wallet_id ?? '' })
  }
  for (const row of await findTransactions(db, organization_id, hashes)) {
    const id = byId.get(row.network_id)!.family.formatTransactionHash(row.hash)
    const { title, wallet_id } = row
    results.push({ kind: 'transaction', ...at(row.network_id), id, title, wallet_id })
  }
  const managed = { id: query, hashes: hashes.map(({ hash }) => hash) }
  for (const row of await findManagedTransactions(db, searched, managed)) {
    const { id, title, wallet_id } = row
    const kind = 'managed_transaction'
    results.push({ kind, ...at(row.network_id), id, title, wallet_id: wallet_id ?? '' })
  }
  for (const row of await findWalletsByName(db, searched, query)) {
    const { id, title } = row
    results.push({ kind: 'wallet', ...at(row.network_id), id, title, wallet_id: id })
  }
  // Organizations are visible to administrators of the installation only.
  if (principal.role === 'ROLE_ADMIN')
    for (const row of await searchOrganizations(db, query, mostResults))
      results.push({
        ...{ kind: 'organization', chain: '', network: '', id: row.organization_id },
        ...{ title: row.name, wallet_id: '' },
      })
  return { results: results.slice(0, mostResults) }
}

/** The tracked networks whose operations the caller may read. */
function placesOf({ chains, overview, principal }: Context) {
  const scopes = principal.restrictions?.scopes
  return (overview?.chains() ?? []).flatMap(({ chain, network }) => {
    const open = chains?.find(chain, network)
    if (!open || (scopes && !coversScope(scopes, operationScope(chain, 'read')))) return []
    return [{ chain, network, network_id: open.network_id, family: open.chain }]
  })
}
