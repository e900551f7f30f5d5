import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compare } from '../../../test/spec/compare.ts'
import { differences } from '../../../test/spec/differences.ts'
import { flattenRequest, flattenResponse } from '../../../test/spec/flatten.ts'
import { httpMethods, webSocketMethods } from '../../../test/spec/gateway-methods.ts'
import { parseOperations } from '../../../test/spec/notation.ts'
import { operationCounts, operations } from '../../../test/spec/operations.ts'
import { anyOfIn, requestSchema, responseSchema } from '../operation.ts'
import { services } from '../variant.ts'
import { catalogue, findOperation, pathOf } from './catalogue.ts'
import { rpcMethods } from './gateway.ts'

const spec = parseOperations(operations)
const specified = catalogue.filter(({ row }) => !row.extension)
const keyOf = (tag: string, name: string) => `${tag}.${name}`

/** Every difference between the catalogue and the specification, one line each. */
const found = [...specified.flatMap(operationLines), ...methodLines()]

function operationLines({ service, name, row }: (typeof catalogue)[number]): string[] {
  const tag = services[service]
  const theirs = spec.find((one) => one.tag === tag && one.name === name)
  if (!theirs) return []
  const request = compare(theirs.request, flattenRequest(requestSchema(row, service)))
  const response = compare(theirs.response, flattenResponse(responseSchema(row, service)))
  const [wanted, given] = [theirs.atLeastOne, anyOfIn(row, tag)].map((one) => one.join(' ') || '-')
  return [
    ...request.map((line) => `request ${line}`),
    ...response.map((line) => `response ${line}`),
    ...(wanted === given ? [] : [`at least one: ${wanted} -> ${given}`]),
    // The tables exclude nothing.
    ...(row.exclusive ?? []).map((pair) => `not together: - -> ${pair.join(' ')}`),
  ].map((line) => `${keyOf(tag, name)} ${line}`)
}

function methodLines(): string[] {
  const paramsOf = new Map(
    rpcMethods.map(({ name, params }) => [
      name,
      `(${params
        .filter(({ extension }) => !extension)
        .map(({ type, optional }) => `${type}${optional ? '?' : ''}`)
        .join(', ')})`,
    ]),
  )
  return [...`${httpMethods}${webSocketMethods}`.matchAll(/^(\w+) (\(.*\))/gm)]
    .filter(([, name = '', params]) => paramsOf.get(name) !== params)
    .map(([, name = '', params]) => `${name} ${params} -> ${paramsOf.get(name)}`)
}

describe('the catalogue and the tables of the specification', () => {
  test('have the same operations in the same services: 95', () => {
    const theirs = spec.map(({ tag, name }) => keyOf(tag, name))
    const ours = specified.map(({ service, name }) => keyOf(services[service], name))
    expect(ours.sort()).toEqual(theirs.sort())
    expect(new Set(ours).size).toBe(95)
    const counts = Object.groupBy(specified, ({ service }) => service)
    expect(
      Object.fromEntries(Object.entries(counts).map(([service, rows]) => [service, rows.length])),
    ).toEqual(operationCounts)
  })

  test('differ only where a reason is given', () => {
    const unexplained = found.filter((line) => !differences.some(({ match }) => match.test(line)))
    expect(unexplained).toEqual([])
  })

  test('have no reason left for a difference that is gone', () => {
    const stale = differences.filter(({ match }) => !found.some((line) => match.test(line)))
    expect(stale).toEqual([])
  })
})

describe('extensions', () => {
  test('operations', () => {
    const names = catalogue
      .filter(({ row }) => row.extension)
      .map(({ service, name }) => pathOf(service, name))
    expect(names.filter((path) => !/^\/v1\/[tsp]\//.test(path))).toMatchInlineSnapshot(`
      [
        "/v1/admin/CreateOrganization",
        "/v1/admin/ListOrganizations",
        "/v1/admin/CreateCredential",
        "/v1/admin/RotateCredential",
        "/v1/admin/RevokeCredential",
        "/v1/admin/UpdateCredential",
        "/v1/admin/ListCredentials",
        "/v1/admin/SetRateLimit",
        "/v1/admin/ListEffectiveRateLimits",
        "/v1/admin/GetUsage",
        "/v1/admin/ListMethodUsage",
        "/v1/admin/ListAuditEvents",
        "/v1/admin/SetQuota",
        "/v1/admin/RenameOrganization",
        "/v1/admin/DisableOrganization",
        "/v1/admin/EnableOrganization",
        "/v1/admin/DeleteOrganization",
        "/v1/admin/GetOrganizationDeletion",
        "/v1/admin/GetCurrentCredential",
        "/v1/admin/ListChains",
        "/v1/admin/ListNodes",
        "/v1/admin/ListWebSocketClients",
        "/v1/admin/ListProblems",
        "/v1/admin/ListMetrics",
        "/v1/admin/ListSearchResults",
        "/v1/admin/CreateStreamToken",
        "/v1/c/ListAddresses",
        "/v1/c/RenameWallet",
        "/v1/c/RemoveWallet",
        "/v1/c/ListBalanceHistory",
        "/v1/c/ListWebhooks",
        "/v1/c/GetWebhookSigningSecret",
        "/v1/c/RotateWebhookSigningSecret",
        "/v1/c/UpdateWebhook",
        "/v1/c/DisableWebhook",
        "/v1/c/EnableWebhook",
        "/v1/c/SendTestWebhook",
        "/v1/c/RetryWebhookHistory",
        "/v1/c/ListWebhookAttempts",
        "/v1/c/RegisterSink",
        "/v1/c/ListSinks",
        "/v1/c/UpdateSink",
        "/v1/c/EnableSink",
        "/v1/c/DisableSink",
        "/v1/c/RemoveSink",
        "/v1/c/CreateStreamToken",
      ]
    `)
    const webhooks = (service: string) =>
      names.filter((path) => path.startsWith(`/v1/${service}/`)).map((path) => path.slice(6))
    expect(webhooks('p')).toEqual(webhooks('c'))
    // Contracts are removed by an operation of the specification; tokens of whole wallets by one of ours.
    for (const service of ['t', 's'])
      expect(webhooks(service).filter((name) => name !== 'RemoveAsset')).toEqual(webhooks('c'))
  })

  test('fields in the records of the specification', () => {
    const fields = specified.flatMap(({ service, name, row }) =>
      [...flattenResponse(responseSchema(row, service))]
        .filter(([, said]) => said.extension)
        .map(([path]) => `${keyOf(services[service], name)} ${path}`),
    )
    expect(fields).toMatchInlineSnapshot(`
      [
        "A.GetOrganizationByDomain organization.disable_time",
        "T.GetWallet wallet.address_count",
        "T.GetWallet wallet.addresses_truncated",
        "T.ListWallets wallets[].address_count",
        "T.ListWallets wallets[].addresses_truncated",
        "T.ListAssets assets[].token_address",
        "T.ListAssets assets[].token_account_address",
        "T.ListAssets assets[].is_unreadable",
        "T.ListTransfers transfers[].message_hex",
        "T.ListTransfers transfers[].block_number",
        "T.ListTransfers transfers[].token_address",
        "T.ListTransfers transfers[].transfer_id",
        "T.ListTransfers transfers[].wallet_id",
        "T.ListTransfers transfers[].direction",
        "T.ListTransfers transfers[].fee_paid",
        "T.ListTransfers transfers[].transfer_time",
        "T.ListTransfers transfers[].position",
        "T.ListWebhookHistories webhook_histories[].create_time",
        "S.GetWallet wallet.address_count",
        "S.GetWallet wallet.addresses_truncated",
        "S.ListWallets wallets[].address_count",
        "S.ListWallets wallets[].addresses_truncated",
        "S.ListAssets assets[].token_address",
        "S.ListTransfers transfers[].transaction_fee",
        "S.ListTransfers transfers[].block_number",
        "S.ListTransfers transfers[].token_address",
        "S.ListTransfers transfers[].transfer_id",
        "S.ListTransfers transfers[].wallet_id",
        "S.ListTransfers transfers[].direction",
        "S.ListTransfers transfers[].fee_paid",
        "S.ListTransfers transfers[].transfer_time",
        "S.ListTransfers transfers[].position",
        "S.ListWebhookHistories webhook_histories[].create_time",
        "P.GetWallet wallet.address_count",
        "P.GetWallet wallet.addresses_truncated",
        "P.ListWallets wallets[].address_count",
        "P.ListWallets wallets[].addresses_truncated",
        "P.ListAssets assets[].token_address",
        "P.ListTransfers transfers[].block_number",
        "P.ListTransfers transfers[].token_address",
        "P.ListTransfers transfers[].detail",
        "P.ListTransfers transfers[].detail.source",
        "P.ListTransfers transfers[].detail.event",
        "P.ListTransfers transfers[].detail.pallet",
        "P.ListTransfers transfers[].detail.xcm_message_id",
        "P.ListTransfers transfers[].transfer_id",
        "P.ListTransfers transfers[].wallet_id",
        "P.ListTransfers transfers[].direction",
        "P.ListTransfers transfers[].fee_paid",
        "P.ListTransfers transfers[].transfer_time",
        "P.ListTransfers transfers[].position",
        "P.ListWebhookHistories webhook_histories[].create_time",
        "C.GetWallet wallet.address_count",
        "C.GetWallet wallet.addresses_truncated",
        "C.ListWallets wallets[].address_count",
        "C.ListWallets wallets[].addresses_truncated",
        "C.ListAssets assets[].is_unreadable",
        "C.ListTransfers transfers[].verified",
        "C.ListTransfers transfers[].transfer_id",
        "C.ListTransfers transfers[].wallet_id",
        "C.ListTransfers transfers[].direction",
        "C.ListTransfers transfers[].fee_paid",
        "C.ListTransfers transfers[].transfer_time",
        "C.ListTransfers transfers[].position",
        "C.ListWebhookHistories webhook_histories[].create_time",
        "C.CreateTransaction transaction.stuck",
        "C.CreateTransaction transaction.last_error",
        "C.CreateTransaction transaction.warnings",
        "C.CreateTransaction transaction.warnings[]",
        "C.CreateTransaction transaction.replaced_by",
        "C.CreateTokenTransaction transaction.stuck",
        "C.CreateTokenTransaction transaction.last_error",
        "C.CreateTokenTransaction transaction.warnings",
        "C.CreateTokenTransaction transaction.warnings[]",
        "C.CreateTokenTransaction transaction.replaced_by",
        "C.GetTransaction transaction.stuck",
        "C.GetTransaction transaction.last_error",
        "C.GetTransaction transaction.warnings",
        "C.GetTransaction transaction.warnings[]",
        "C.GetTransaction transaction.replaced_by",
        "C.ListTransactions transactions[].stuck",
        "C.ListTransactions transactions[].last_error",
        "C.ListTransactions transactions[].warnings",
        "C.ListTransactions transactions[].warnings[]",
        "C.ListTransactions transactions[].replaced_by",
        "C.SendTransaction transaction.stuck",
        "C.SendTransaction transaction.last_error",
        "C.SendTransaction transaction.warnings",
        "C.SendTransaction transaction.warnings[]",
        "C.SendTransaction transaction.replaced_by",
      ]
    `)
  })

  test('are in these requests of the specification, and optional', () => {
    const fields = specified.flatMap(({ service, name, row }) =>
      [...flattenRequest(requestSchema(row, service))]
        .filter(([path, said]) => said.extension && !path.includes('[]'))
        .map(
          ([path, said]) =>
            `${keyOf(services[service], name)} ${path}${said.required ? ' required' : ''}`,
        ),
    )
    expect(fields).toEqual([
      'T.ImportAsset wallet_id',
      'T.ListWebhookHistories transaction_hash',
      'T.RegisterWebhook events',
      'S.ImportAsset wallet_id',
      'S.ListWebhookHistories transaction_digest',
      'S.RegisterWebhook events',
      'P.ImportAsset wallet_id',
      'P.ImportAsset token_address',
      'P.ListAssets token_address',
      'P.ListWebhookHistories transaction_hash',
      'P.RegisterWebhook events',
      'C.ListWebhookHistories transaction_hash',
      'C.RegisterWebhook events',
      'C.ListTransactions transaction_state',
    ])
  })
})

describe('every address input', () => {
  const hex = fc.string({
    unit: fc.constantFrom(...'0123456789abcdef'),
    minLength: 40,
    maxLength: 40,
  })
  const patterns = specified.flatMap(({ service, row }) =>
    [...flattenRequest(requestSchema(row, service))]
      .filter(([path, said]) => /^(address|addresses\[\]|from|to)$/.test(path) && said.pattern)
      .map(([, said]) => String(said.pattern)),
  )

  test.each([...new Set(patterns)])('%s takes what the EVM pattern takes', (pattern) => {
    fc.assert(fc.property(hex, (digits) => new RegExp(pattern, 'u').test(`0x${digits}`)))
  })
})

describe('every row', () => {
  test.each(catalogue.map((entry) => [pathOf(entry.service, entry.name), entry] as const))(
    '%s is well-formed',
    (_, { service, name, row }) => {
      expect(findOperation(service, name)?.row).toBe(row)
      expect(name).toMatch(/^[A-Z][A-Za-z]+$/)
      expect(row.summary).toMatch(/^[A-Z].*\.$/)
      const fields = requestSchema(row, service).properties
      for (const choice of anyOfIn(row, services[service])) expect(fields).toHaveProperty(choice)
      for (const path of [
        ...flattenRequest(requestSchema(row, service)).keys(),
        ...flattenResponse(responseSchema(row, service)).keys(),
      ])
        expect(path).toMatch(/^[a-z0-9_.[\]]+$/)
    },
  )
})

describe('findOperation', () => {
  test.each([
    ['c', 'GetAddress'],
    ['p', 'UpdateConfirmation'],
    ['c', 'ImportAsset'],
    ['q', 'RegisterWallet'],
    ['c', 'registerWallet'],
    ['C', 'RegisterWallet'],
    ['c', 'constructor'],
    ['__proto__', 'toString'],
    ['', ''],
  ])('finds nothing at %s/%s', (service, name) => {
    expect(findOperation(service, name)).toBeUndefined()
  })
})
