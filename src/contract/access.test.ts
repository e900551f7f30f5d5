import { describe, expect, it } from 'vitest'
import { accessOf, onlyShows, roleFor, roleMayCall } from './access.ts'
import { catalogue } from './operations/catalogue.ts'
import { includesRole, roles } from './roles.ts'

describe('the access of operations', () => {
  it('is a read for nothing that changes or shows a secret', () => {
    const reads = catalogue.filter((entry) => accessOf(entry) === 'read')
    // A stream token opens only what its credential may read, and is stored nowhere.
    const others = reads.filter(({ name }) => name !== 'CreateStreamToken')
    for (const { name } of others) expect(name).toMatch(/^(?:Get|List|Verify)/)
    const secret = ['GetWebhookSigningSecret', 'ListWebhookHeaders']
    expect(reads.filter(({ name }) => secret.includes(name))).toEqual([])
    const shown = catalogue.filter(({ name }) => onlyShows(name)).map(({ name }) => name)
    expect([...new Set(shown)].sort()).toEqual(secret)
  })

  it('is a write for everything that changes or shows a secret', () => {
    const writes = catalogue.filter((entry) => accessOf(entry) === 'write').map(({ name }) => name)
    expect([...new Set(writes)].sort().join(' ')).toMatchInlineSnapshot(
      `"BatchRegisterAddresses BatchRemoveAddresses CancelTransaction CreateCredential CreateOrganization CreateTokenTransaction CreateTransaction DeleteCredential DeleteOrganization DeleteRateLimit DisableOrganization DisableSink DisableWebhook EnableOrganization EnableSink EnableWebhook GetWebhookSigningSecret ImportAsset ListWebhookHeaders RefreshAssetBalances RegisterAddress RegisterContract RegisterSink RegisterWallet RegisterWebhook RegisterWebhookHeader RemoveAddress RemoveAsset RemoveContract RemoveSink RemoveWallet RemoveWebhook RemoveWebhookHeader RenameOrganization RenameWallet RetryWebhookHistory RevokeCredential RotateCredential RotateWebhookSigningSecret SendTestWebhook SendTransaction SetQuota SetRateLimit SubmitTransactionSignature UpdateConfirmation UpdateCredential UpdateSink UpdateWebhook"`,
    )
  })

  it('gives each role all that a narrower one has, and more', () => {
    const counts = roles.map((role) => catalogue.filter((entry) => roleMayCall(role, entry)).length)
    expect(counts).toEqual(counts.toSorted((a, b) => b - a))
    expect(new Set(counts).size).toBe(roles.length)
    expect(counts[0]).toBe(catalogue.length)
  })

  it('names the role that is missing', () => {
    for (const entry of catalogue)
      for (const role of roles)
        expect(roleMayCall(role, entry)).toBe(includesRole(role, roleFor(entry)))
    const find = (name: string) => catalogue.find((entry) => entry.name === name)!
    expect(roleFor(find('ListWallets'))).toBe('ROLE_READER')
    expect(roleFor(find('RegisterWallet'))).toBe('ROLE_MEMBER')
    expect(roleFor(find('CreateCredential'))).toBe('ROLE_OWNER')
    expect(roleFor(find('CreateOrganization'))).toBe('ROLE_ADMIN')
  })
})
