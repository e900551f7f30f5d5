import { isToBeFetched, locate } from './locate.ts'

// Run by `npm ci`, which shows what it is waiting for: the first start would wait for the same. Where it
// does not come now (no network, another user's home) the start retries, so this never fails.
const { NODE_ENV, npm_config_omit = '' } = process.env
const isProduction = NODE_ENV === 'production' || npm_config_omit.includes('dev')
if (!isProduction && isToBeFetched('anvil')) {
  console.log('There is no anvil for this machine: fetching an emulator, once, about a minute …')
  await locate('anvil').then(
    () => console.log('Fetched: the local EVM chains can start.'),
    (error: Error) => console.log(`Not fetched, the first start tries again: ${error.message}`),
  )
}
