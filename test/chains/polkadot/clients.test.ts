import { ApiPromise, Keyring, WsProvider } from '@polkadot/api'
import type { ApiOptions } from '@polkadot/api/types'
import { createClient } from '@polkadot-api/substrate-client'
import { getWsProvider } from '@polkadot-api/ws-provider'
import { afterAll, describe, expect, it } from 'vitest'
import { toHex } from '../../../devnet/polkadot/bytes.ts'
import {
  developmentSigners,
  signerForClients,
} from '../../../devnet/polkadot/development-accounts.ts'
import { startPolkadotDevChain } from '../../../devnet/polkadot/node.ts'
import { formatAddress } from '../../../src/chains/polkadot/address.ts'
import { waitFor } from '../../helpers/wait-for.ts'
import { readBalanceOf } from './harness.ts'

const unit = 10n ** 12n
// Blocks come by themselves, as for a user of the embedded mode.
const node = await startPolkadotDevChain({ blockTimeMs: 200 })
afterAll(node.stop)
const account = (number: number) => node.signer(number).account

describe('clients from outside on the Polkadot dev node', () => {
  it('@polkadot/api: connects, signs, submits, watches to finality, reads and subscribes', async () => {
    // Its types are not made for exact optional properties.
    const provider = new WsProvider(node.node_url) as unknown as ApiOptions['provider']
    const api = await ApiPromise.create({ provider: provider!, noInitWarn: true })
    try {
      expect(api.genesisHash.toHex()).toBe(node.genesis_hash)
      expect(api.runtimeVersion.specVersion.toNumber()).toBe(900)
      const alice = new Keyring({ type: 'sr25519' }).addFromUri('//Alice')
      const to = formatAddress(account(200), 42)
      const balances: string[] = []
      await api.query.system!.account!(to, (info: { toJSON(): unknown }) => {
        const { data } = info.toJSON() as { data: { free: string | number } }
        balances.push(String(data.free))
      })
      const finalized = await new Promise<string>((resolve, reject) => {
        api.tx.balances!.transferKeepAlive!(to, unit)
          .signAndSend(alice, ({ status, dispatchError }) => {
            if (dispatchError) reject(new Error(dispatchError.toString()))
            if (status.isFinalized) resolve(status.asFinalized.toHex())
          })
          .catch(reject)
      })
      expect(node.chain.find(finalized)).toBeDefined()
      expect(readBalanceOf(node, account(200))).toBe(unit)
      const block = await api.rpc.chain.getBlock(finalized)
      const methods = block.block.extrinsics.map(({ method }) => method.method)
      expect(methods).toContain('transferKeepAlive')
      expect(balances[0]).toBe('0')
      await waitFor('the subscription reports', () => BigInt(balances.at(-1)!) === unit)
    } finally {
      await api.disconnect()
    }
  })

  it('polkadot-api: its client and its signer, with the metadata of the chain', async () => {
    const client = createClient(getWsProvider(node.node_url))
    try {
      const request = <result>(method: string, ...params: unknown[]) =>
        client.request<result>(method, params)
      const bob = developmentSigners().Bob
      const signer = signerForClients(bob)
      const { state } = node.chain.best()
      const code = node.chain.codeOf(state)
      const value = { dest: { type: 'Id', value: node.address(account(201)) }, value: 2n * unit }
      const call = code.encodeCall('Balances', 'transfer_keep_alive', value)
      const address = formatAddress(bob.account, 42)
      const nonce = await request<number>('system_accountNextIndex', address)
      const u32 = (number: number) => {
        const bytes = new Uint8Array(4)
        new DataView(bytes.buffer).setUint32(0, number, true)
        return bytes
      }
      const none = new Uint8Array()
      const genesis = Uint8Array.from(Buffer.from(node.genesis_hash.slice(2), 'hex'))
      const extensions: Record<string, [Uint8Array, Uint8Array]> = {
        CheckNonZeroSender: [none, none],
        CheckSpecVersion: [none, u32(code.version.specVersion)],
        CheckTxVersion: [none, u32(code.version.transactionVersion)],
        CheckGenesis: [none, genesis],
        CheckMortality: [Uint8Array.of(0), genesis],
        CheckNonce: [Uint8Array.of(nonce << 2), none],
        CheckWeight: [none, none],
        ChargeAssetTxPayment: [Uint8Array.of(0, 0), none],
      }
      const metadata = await request<string>('state_getMetadata')
      const signed = await signer.signTx(
        Uint8Array.from(call),
        Object.fromEntries(
          Object.entries(extensions).map(([identifier, [extra, additionalSigned]]) => [
            identifier,
            { identifier, value: extra, additionalSigned },
          ]),
        ),
        Uint8Array.from(Buffer.from(metadata.slice(2), 'hex')),
        node.chain.best().number,
      )
      const updates: unknown[] = []
      await new Promise<void>((resolve, reject) => {
        client._request<string, unknown>('author_submitAndWatchExtrinsic', [toHex(signed)], {
          onSuccess: (id, follow) => {
            follow(id, {
              next: (update) => {
                updates.push(update)
                if (typeof update === 'object' && update && 'finalized' in update) resolve()
              },
              error: reject,
            })
          },
          onError: reject,
        })
      })
      expect(updates).toEqual([
        'ready',
        { inBlock: expect.stringMatching(/^0x/) },
        { finalized: expect.stringMatching(/^0x/) },
      ])
      expect(readBalanceOf(node, account(201))).toBe(2n * unit)
    } finally {
      client.destroy()
    }
  })
})
