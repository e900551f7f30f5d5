import { modernCode } from '../test/chains/polkadot/modern-code.ts'

// Run by `npm ci` of a checkout, so that the tests need no network. Where it does not come now, the first test that
// needs it tries again, so this never fails.
const { NODE_ENV, npm_config_omit = '' } = process.env
if (NODE_ENV !== 'production' && !npm_config_omit.includes('dev')) {
  try {
    modernCode()
  } catch (error) {
    console.log(`Test data not fetched, the tests try again: ${(error as Error).message}`)
  }
}
