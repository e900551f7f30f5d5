import { accountOf } from '../../../test/helpers/wallets.ts'
import type { WalletService } from '../../contract/variant.ts'
import { families } from '../registry.ts'
import { describeChain } from './conformance.ts'
import { createScriptedChain } from './scripted-chain.ts'

for (const service of Object.keys(families) as WalletService[]) {
  describeChain(`${service}, scripted`, async () => {
    const chain = createScriptedChain({ family: families[service](), endowment: 1_000_000n })
    return {
      chain,
      account: (number) => accountOf(service, number),
      pay: async (movement) => {
        chain.mine([{ payer: movement.from, fee: 1n, movements: [movement] }])
      },
      mine: async (count) => {
        for (let made = 0; made < count; made++) chain.mine()
      },
      reorganize: async (depth) => {
        chain.reorganize(depth, Array(depth + 1).fill([]))
      },
      mineUnknown: async () => {
        chain.mine([{ unknown_kind: 'teleport' }])
      },
      setMode: async (mode) => chain.setMode(mode),
      stop: chain.stop,
    }
  })
}
