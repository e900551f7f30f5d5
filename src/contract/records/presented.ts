import type { Static, TObject } from 'typebox'
import type { MergedAnswer } from '../merge.ts'
import type { Fields, PropertiesIn, Rec, services, WalletService } from '../variant.ts'
import type { AssetType } from './assets.ts'
import type { Asset, Transfer } from './wallet.ts'

/** A record in each of the services. */
type RecordIn<
  record extends Rec<Fields>,
  service extends WalletService,
> = service extends WalletService
  ? Static<TObject<PropertiesIn<record['fields'], (typeof services)[service]>>>
  : never

type Presented<
  record extends Rec<Fields>,
  service extends WalletService,
  added extends string,
> = Omit<MergedAnswer<RecordIn<record, service>>, 'asset_type' | added> & { asset_type: AssetType }

/** The fields of a transfer that the chain knows; the others depend on the wallet that sees it. */
export type PresentedTransfer<service extends WalletService = WalletService> = Presented<
  typeof Transfer,
  service,
  'wallet_id' | 'transfer_id' | 'direction' | 'fee_paid' | 'transfer_time'
>

/** The fields of a balance that the chain knows. */
export type PresentedAsset<service extends WalletService = WalletService> = Presented<
  typeof Asset,
  service,
  'is_unreadable'
>
