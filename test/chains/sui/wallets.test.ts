import { SuiGrpcClient } from '@mysten/sui/grpc'
import { coinWithBalance, Transaction } from '@mysten/sui/transactions'
import { normalizeStructTag } from '@mysten/sui/utils'
import { afterAll, describe, expect, it } from 'vitest'
import { devCoin } from '../../../devnet/sui/accounts.ts'
import { startSuiNode } from '../../../devnet/sui/node.ts'
import { type Answer, startTestApp } from '../../helpers/app.ts'
import { waitFor } from '../../helpers/wait-for.ts'

const coinType = '0xde7::coral::CORAL'
const asset_type = 'ASSET_TYPE_S'
const addressOf = (number: number) => `0x${number.toString(16).padStart(64, '0')}`

describe.each(['grpc', 'grpc-web'] as const)(
  'variant S through the service over %s',
  async (transport) => {
    const node = await startSuiNode()
    node.faults.token = 'secret-token'
    afterAll(node.stop)
    const { ledger } = node
    const app = await startTestApp({
      config: {
        chains: {
          s: {
            networks: {
              mainnet: {
                upstreams: [
                  { url: node.url, transport, priority: 0, headers: { 'X-Token': 'secret-token' } },
                ],
              },
            },
          },
        },
      },
    })
    const tenant = await app.createTenant()
    const raw = (operation: string, body: object): Promise<Answer> =>
      app.call(tenant.member, `s/${operation}`, body)
    const call = async (operation: string, body: object) => {
      const answer = await raw(operation, body)
      expect(answer.status, answer.text).toBe(200)
      return answer.json
    }
    const status = async () => (await app.admin('/status')).json.chains.s.tracking
    /** Closes checkpoints, and waits until the service has stored them. */
    const seal = async (count = 1) => {
      for (let i = 0; i < count; i++) ledger.seal()
      const { number } = ledger.history.newest()
      await waitFor('the tracker is there', async () => (await status()).block_number === number)
    }
    const [rich, other] = [node.key(1), node.key(2)]
    let next = 100
    const newAddress = () => addressOf(next++)
    const newWallet = async (request: object = {}): Promise<string> =>
      (await call('RegisterWallet', { name: 'w', confirmation: 1, ...request })).wallet_id
    const balanceOf = async (
      address: string,
      token_address?: string,
    ): Promise<string | undefined> => {
      const { assets } = await call('ListAssets', {
        address,
        asset_type,
        ...(token_address && { token_address }),
      })
      const native = assets.find((asset: { token_address: string }) => !asset.token_address)
      return (token_address ? assets[0] : native)?.balance
    }
    const transfersOf = async (request: object) => (await call('ListTransfers', request)).transfers

    await waitFor('the tracker leads', async () => {
      ledger.seal()
      return (await status())?.block_number !== null
    })

    it('notifies of a payment and counts it', async () => {
      const address = newAddress()
      const wallet_id = await newWallet({ address, import_asset: true })
      expect(await balanceOf(address)).toBe('0')
      const transaction_digest = await node.pay(rich, address, 123_456n)
      await seal()
      const record = {
        transaction_digest,
        asset_type,
        from: rich.toSuiAddress(),
        to: address,
        value: '123456',
        status: 'success',
        token_address: '',
        transaction_fee: expect.stringMatching(/^[1-9]/),
        block_number: expect.any(Number),
        position: expect.any(Number),
        transfer_id: expect.any(String),
        wallet_id,
        direction: 'TRANSFER_DIRECTION_INCOMING',
        fee_paid: '0',
        transfer_time: expect.stringMatching(/Z$/),
      }
      expect(await transfersOf({ transaction_digest })).toEqual([record])
      expect(await transfersOf({ wallet_id })).toEqual([record])
      expect(await transfersOf({ address })).toEqual([record])
      await waitFor('the balance', async () => (await balanceOf(address)) === '123456')
      expect(await call('GetAddress', { address })).toEqual({ address, wallet_id })
    })

    it('reads an address in any form, and says what is wrong with others', async () => {
      const wallet_id = await newWallet()
      await call('RegisterAddress', { wallet_id, address: '0xABC' })
      expect((await call('GetAddress', { address: `0x${'abc'.padStart(40, '0')}` })).address).toBe(
        addressOf(0xabc),
      )
      for (const address of ['', '0x', 'alice.sui', `0x${'a'.repeat(65)}`, 'abc', '0xg']) {
        const answer = await raw('RegisterAddress', { wallet_id, address })
        expect(answer.status, address).toBe(400)
        expect(answer.json.errors[0].field).toBe('address')
      }
      const refused = await raw('ListTransfers', { transaction_digest: 'not-a-digest' })
      expect(refused.status).toBe(400)
      expect((await raw('GetAddress', { address: addressOf(9) })).status).toBe(404)
      expect(await transfersOf({ transaction_digest: ledger.chainId })).toEqual([])
    })

    it('keeps a credit back until the checkpoints that the wallet asks for', async () => {
      const address = newAddress()
      const wallet_id = await newWallet({ address, import_asset: true, confirmation: 5 })
      await node.pay(rich, address, 10n)
      await seal(4)
      expect((await transfersOf({ address }))[0].value).toBe('10')
      // Nothing, or what was imported, once that is confirmed.
      expect((await balanceOf(address)) ?? '0').toBe('0')
      await seal()
      await waitFor('the credit', async () => (await balanceOf(address)) === '10')
      await node.pay(rich, address, 5n)
      await seal(2)
      expect(await balanceOf(address)).toBe('10')
      await call('RefreshAssetBalances', { address, asset_type: 'ASSET_TYPE_S' })
      expect(await balanceOf(address)).toBe('10')
      await call('UpdateConfirmation', { wallet_id, confirmation: 1 })
      await seal()
      await waitFor('the credit', async () => (await balanceOf(address)) === '15')
      expect((await call('GetWallet', { wallet_id })).wallet.confirmation).toBe(1)
    })

    it('tracks a coin type once it is imported', async () => {
      const address = newAddress()
      await newWallet({ address })
      const pay = (balance: bigint) =>
        node.run(rich, (transaction) => {
          const [held] = ledger.live.coinsOf(rich.toSuiAddress(), devCoin)
          const ref = { objectId: held!.id, version: String(held!.version), digest: held!.digest }
          const [coin] = transaction.splitCoins(transaction.objectRef(ref), [balance])
          transaction.transferObjects([coin], address)
        })
      await pay(70n)
      await seal()
      expect(await transfersOf({ address })).toEqual([])
      for (const bad of ['0x1::none::NONE', 'coral'])
        expect(
          (await raw('ImportAsset', { address, asset_type, token_address: bad })).json.errors[0]
            .field,
        ).toBe('token_address')
      // Sui has no token accounts: whatever is said of one is not looked at.
      await call('ImportAsset', {
        address,
        asset_type,
        token_address: coinType,
        token_account_address: 'anything',
      })
      expect(await balanceOf(address, coinType)).toBe('70')
      await pay(7n)
      await seal()
      const [record] = await transfersOf({ address })
      expect(record).toMatchObject({ value: '7', token_address: devCoin, asset_type })
      await waitFor('the balance', async () => (await balanceOf(address, devCoin)) === '77')
      const { assets } = await call('ListAssets', { address, asset_type, is_aggregated: true })
      expect(assets).toMatchObject([{ balance: '77', token_address: devCoin }])
    })

    it('keeps of what strangers call their coins what can be stored', async () => {
      const names = ['Free\u0000Coin\u202e', '\u0000', 'x'.repeat(100_000), 'half \ud83d']
      const known: unknown[] = []
      for (const [number, name] of names.entries()) {
        const type = `0x${number + 10}::free::FREE`
        ledger.addCoin(type, { name, symbol: name, decimals: 40_000, description: name })
        const wallet_id = await newWallet({ address: newAddress() })
        await call('ImportAsset', { wallet_id, asset_type, token_address: type })
        const [asset] = await app.database.db
          .selectFrom('asset')
          .select(['name', 'symbol', 'decimals'])
          .where('contract_address', '=', Buffer.from(normalizeStructTag(type)))
          .execute()
        known.push(asset)
      }
      const none = { name: null, symbol: null, decimals: null }
      const of = (name: string) => ({ ...none, name, symbol: name })
      expect(known).toEqual([of('FreeCoin'), none, none, of('half \ufffd')])
    })

    it('tracks a coin type for the addresses that a wallet has and gets', async () => {
      const [early, late] = [newAddress(), newAddress()]
      const pay = (address: string, balance: bigint) =>
        node.run(rich, (transaction) => {
          const [held] = ledger.live.coinsOf(rich.toSuiAddress(), devCoin)
          const ref = { objectId: held!.id, version: String(held!.version), digest: held!.digest }
          const [coin] = transaction.splitCoins(transaction.objectRef(ref), [balance])
          transaction.transferObjects([coin], address)
        })
      const wallet_id = await newWallet({ address: early })
      await pay(early, 40n)
      await pay(late, 50n)
      await seal()
      const request = { wallet_id, asset_type, token_address: coinType }
      const unknown = await raw('ImportAsset', { ...request, token_address: '0x1::none::NONE' })
      expect(unknown.json.errors[0].field).toBe('token_address')
      await call('ImportAsset', request)
      await call('ImportAsset', request)
      expect(await balanceOf(early, coinType)).toBe('40')
      await call('RegisterAddress', { wallet_id, address: late })
      await pay(late, 3n)
      await seal()
      expect(await transfersOf({ wallet_id })).toMatchObject([
        { to: late, value: '3', token_address: devCoin, asset_type },
      ])
      await waitFor('the balance', async () => (await balanceOf(late, coinType)) === '53')
      await pay(late, 4n)
      await seal()
      await waitFor('the balance', async () => (await balanceOf(late, coinType)) === '57')
      await call('RefreshAssetBalances', { wallet_id, asset_type })
      expect(await balanceOf(late, coinType)).toBe('57')
    })

    it('imports the native coin by name, with the earlier balance', async () => {
      const address = newAddress()
      await node.pay(rich, address, 999n)
      await seal()
      await newWallet({ address })
      await call('ImportAsset', { address, asset_type, token_address: '0x2::sui::SUI' })
      expect(await balanceOf(address)).toBe('999')
      await call('ImportAsset', { address, asset_type, token_account_address: 'x' })
      await call('RefreshAssetBalances', { address, asset_type })
      expect(await balanceOf(address)).toBe('999')
      const unknown = await raw('ImportAsset', { address: addressOf(3), asset_type })
      expect(unknown.status).toBe(404)
    })

    it('notifies of what its own addresses send: to many, failed, sponsored, swapped', async () => {
      const sender = node.key(4)
      const address = sender.toSuiAddress()
      await newWallet({ address, import_asset: true })
      const receivers = [newAddress(), newAddress(), newAddress()]
      const digest = await node.run(sender, (transaction) => {
        const coins = transaction.splitCoins(transaction.gas, [1, 2, 3])
        for (const [index, to] of receivers.entries())
          transaction.transferObjects([coins[index]!], to)
      })
      const failed = await node.run(sender, (transaction) => {
        transaction.moveCall({ target: '0xde7::calls::fail', arguments: [transaction.pure.u64(1)] })
      })
      const swapped = await node.run(sender, (transaction) => {
        const [coin] = transaction.splitCoins(transaction.gas, [55])
        const [got] = transaction.moveCall({
          target: '0xde7::pool::swap',
          typeArguments: ['0x2::sui::SUI', devCoin],
          arguments: [coin!],
        })
        transaction.transferObjects([got!], address)
      })
      const called = await node.run(sender, (transaction) => {
        transaction.moveCall({ target: '0xde7::calls::nothing' })
      })
      await seal()
      const sent = await transfersOf({ transaction_digest: digest })
      expect(sent.map(({ to, value }: { to: string; value: string }) => [to, value])).toEqual(
        expect.arrayContaining([
          [receivers[2], '3'],
          [receivers[1], '2'],
          [receivers[0], '1'],
        ]),
      )
      expect(await transfersOf({ transaction_digest: failed })).toMatchObject([
        { from: address, to: '', value: '0', status: 'failure' },
      ])
      expect(await transfersOf({ transaction_digest: swapped })).toMatchObject([
        { from: address, to: '', value: '55', status: 'success' },
      ])
      expect(await transfersOf({ transaction_digest: called })).toMatchObject([
        { from: address, to: '', value: '0', fee_paid: expect.stringMatching(/^[1-9]/) },
      ])
      const held = () =>
        ledger.sealed
          .coinsOf(address)
          .filter(({ type }) => type !== devCoin)
          .reduce((sum, { balance }) => sum + balance, 0n)
      await waitFor('the balance', async () => (await balanceOf(address)) === held().toString())
    })

    it('counts address balances as well as coins', async () => {
      const address = newAddress()
      await newWallet({ address, import_asset: true })
      const client = new SuiGrpcClient({
        network: 'localnet',
        baseUrl: node.url,
        format: 'binary',
        meta: { 'x-token': 'secret-token' },
      })
      const transaction = new Transaction()
      transaction.setSender(other.toSuiAddress())
      transaction.moveCall({
        target: '0x2::coin::send_funds',
        typeArguments: ['0x2::sui::SUI'],
        arguments: [
          transaction.add(coinWithBalance({ balance: 30n })),
          transaction.pure.address(address),
        ],
      })
      const { bytes, signature } = await other.signTransaction(await transaction.build({ client }))
      await client.executeTransaction({
        transaction: Buffer.from(bytes, 'base64'),
        signatures: [signature],
      })
      await node.pay(rich, address, 12n)
      await seal()
      await waitFor('the balance', async () => (await balanceOf(address)) === '42')
      await call('RefreshAssetBalances', { address, asset_type })
      expect(await balanceOf(address)).toBe('42')
      expect(await transfersOf({ address })).toHaveLength(2)
    })

    it('notifies a webhook after the required checkpoints', async () => {
      const address = newAddress()
      const wallet_id = await newWallet({ address })
      const { webhook_id } = await call('RegisterWebhook', {
        wallet_id,
        webhook_endpoint: 'https://localhost:9443/closed-port',
        confirmation: 3,
      })
      const histories = async () =>
        (await call('ListWebhookHistories', { webhook_id })).webhook_histories
      const transaction_digest = await node.pay(rich, address, 8n)
      await seal(2)
      expect(await histories()).toEqual([])
      await seal()
      await waitFor('the notification', async () => (await histories()).length === 1)
      const [history] = await histories()
      expect(history.notification_type).toBe('NOTIFICATION_TYPE_S_TRANSACTION_UPDATED')
      expect(JSON.stringify(history)).toContain(transaction_digest)
    })

    it('continues after the node was unreachable', async () => {
      const address = newAddress()
      await newWallet({ address })
      node.faults.mode = 'down'
      await node.pay(rich, address, 5n)
      ledger.seal()
      const answer = await raw('ImportAsset', { address, asset_type, token_address: coinType })
      expect(answer.status).toBe(503)
      // The native coin is promised all the same, and read when a node is there.
      await call('ImportAsset', { address, asset_type })
      node.faults.mode = 'up'
      await seal(3)
      expect(await transfersOf({ address })).toHaveLength(1)
      await waitFor('the balance', async () => (await balanceOf(address)) === '5')
    })
  },
)
