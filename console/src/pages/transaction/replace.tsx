import { useState } from 'preact/hooks'
import { useAccount, useApp } from '../../app/context.ts'
import { OperationDialog } from '../../components/operation-form.tsx'
import { type Chain, chainId } from '../../lib/chains.ts'
import { replacementPrice } from '../../lib/replacement-price.ts'
import { pathTo } from '../../lib/router.ts'

type Replaceable = {
  wallet_id: string
  from: string
  to: string
  value: string
  data: string
  nonce: string
  gas: string
  gas_price: string
}

/** Creates a transaction with the same nonce and a higher price: the same again, or one that does nothing. */
export function Replace({ chain, transaction }: { chain: Chain; transaction: Replaceable }) {
  const { on } = useAccount()
  const { router } = useApp()
  const [kind, setKind] = useState<'faster' | 'nothing' | undefined>()
  const { wallet_id, from, to, value, data, nonce, gas } = transaction
  const gas_price = replacementPrice(transaction.gas_price)
  const same = { wallet_id, from, nonce, gas_price }
  const known =
    kind === 'nothing'
      ? { ...same, to: from, value: '0' }
      : { ...same, to, value, gas, ...(data !== '0x' && data && { data }) }
  return (
    <>
      <button type="button" class="button primary" onClick={() => setKind('faster')}>
        Speed up
      </button>
      <button type="button" class="button" onClick={() => setKind('nothing')}>
        Replace by nothing
      </button>
      {kind && (
        <OperationDialog
          title={kind === 'faster' ? 'Speed up' : 'Replace by nothing'}
          submit="Create the replacement"
          on={chain}
          operation="CreateTransaction"
          known={known}
          fixed={['wallet_id', 'from', 'nonce']}
          run={async (request) => {
            const call = on(chain).CreateTransaction
            const { transaction: made } = await call(request as Parameters<typeof call>[0])
            router.go(pathTo('transactions', chainId(chain), made.transaction_id))
          }}
          onClose={() => setKind(undefined)}
        />
      )}
    </>
  )
}
