import { OperationError } from '../../contract/errors/errors.ts'
import { createAnswerTurns } from './answer-turns.ts'
import type { LoopPace } from './loop-pace.ts'

/** Answers the calls of an organization after its large answers. */
export type AnswersInTurn = {
  mustWait(organization_id: string): boolean
  /** Does the work of a call when it is its turn, and counts its answer. Refuses it where the wait is too long. */
  run(
    call: { organization_id: string; bytes: number; signal: AbortSignal },
    work: () => Promise<string>,
  ): Promise<string>
}

/**
 * Makes the turns of operations. To read the rows of an answer, to write them as JSON and to encode the text takes 10 ms for
 * 1 MiB: it counts like an answer that is received from a node.
 */
export function createAnswersInTurn(pace: Pick<LoopPace, 'answer' | 'owedMs'>): AnswersInTurn {
  const turns = createAnswerTurns({ pace })

  const refusal = (organization_id: string) =>
    new OperationError('RATE_LIMITED', {
      detail: 'Large answers of the organization wait, while others use the service.',
      retryAfter: Math.max(1, Math.ceil(pace.owedMs(organization_id) / 1_000)),
    })

  const waitForTurn = (organization_id: string, bytes: number): Promise<() => void> =>
    new Promise((resolve, reject) =>
      turns.wait(organization_id, {
        bytes,
        run: resolve,
        refuse: () => reject(refusal(organization_id)),
      }),
    )

  return {
    mustWait: turns.mustWait,
    async run({ organization_id, bytes, signal }, work) {
      const answered = turns.mustWait(organization_id)
        ? await waitForTurn(organization_id, bytes)
        : undefined
      try {
        // The client may have left while its call waited.
        if (answered) signal.throwIfAborted()
        const answer = await work()
        pace.answer(organization_id, answer.length, false)
        return answer
      } finally {
        answered?.()
      }
    },
  }
}
