import { type Address, Cell, type TupleItem } from '@ton/core'
import { defaultConfig } from '@ton/sandbox/dist/config/defaultConfig.js'
import { Executor } from '@ton/sandbox/dist/executor/Executor.js'

/** What running a message on an account gives: its transaction and its new state, as cells. */
export type Executed =
  | { ok: true; transaction: Cell; transaction_boc: string; state_boc: string }
  | { ok: false; reason: string }

/** Where and when something is executed. */
export type Moment = { lt: bigint; utime: number; random: Buffer }

/** The rules of the chain: what a message does to an account. The only place that knows the emulator. */
export type Rules = {
  run(state_boc: string, message: Cell, moment: Moment): Promise<Executed>
  /** Runs a get-method of a contract. */
  ask(
    contract: { address: Address; code: Cell; data: Cell; balance: bigint },
    question: { method: number; stack: TupleItem[]; utime: number },
  ): Promise<{ exit_code: number; gas_used: number; stack_boc: string }>
}

// `client_method_gas_limit` in validator/impl/liteserver.hpp of ton-blockchain/ton.
const methodGas = 300_000n

/** Loads the reference executor. Taken from its own file: the package's index loads a test framework. */
export async function createRules(): Promise<Rules> {
  const executor = await Executor.create()
  return {
    run: async (state_boc, message, { lt, utime, random }) => {
      const { result } = await executor.runTransaction({
        config: defaultConfig,
        libs: null,
        verbosity: 'short',
        shardAccount: state_boc,
        message,
        now: utime,
        lt,
        randomSeed: random,
        ignoreChksig: false,
        debugEnabled: false,
      })
      if (!result.success)
        return {
          ok: false,
          reason: result.vmResults
            ? `exit code ${result.vmResults.vmExitCode}`
            : result.error.slice(0, 300),
        }
      const transaction = Cell.fromBase64(result.transaction)
      return {
        ok: true,
        transaction,
        transaction_boc: result.transaction,
        state_boc: result.shardAccount,
      }
    },
    ask: async ({ address, code, data, balance }, { method, stack, utime }) => {
      const { output } = await executor.runGetMethod({
        config: defaultConfig,
        verbosity: 'short',
        code,
        data,
        address,
        balance,
        methodId: method,
        stack,
        unixTime: utime,
        randomSeed: Buffer.alloc(32),
        gasLimit: methodGas,
        debugEnabled: false,
      })
      if (!output.success) throw new Error(output.error)
      return {
        exit_code: output.vm_exit_code,
        gas_used: Number(output.gas_used),
        stack_boc: output.stack,
      }
    },
  }
}
