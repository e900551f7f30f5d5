import { parseLiteServer } from '../../app/config/lite-server-text.ts'
import { note, type Shell } from '../shell.ts'
import { askNode, type NodeAnswer } from './ask-node.ts'
import type { NodeKind } from './rpc.ts'

/** Asks nodes which chain they are on. One that is unreachable is reported and may be used all the same. */
export const askNodes = (
  shell: Shell,
  kind: NodeKind,
  urls: readonly string[],
): Promise<(NodeAnswer | undefined)[]> =>
  Promise.all(
    urls.map(async (url) => {
      // What a reference leads to is read by the service.
      const lite = kind === 'ton' ? parseLiteServer(url) : undefined
      const address = lite ?? { url }
      if (!URL.canParse(address.url) || /^(?:env|file):/.test(url)) return undefined
      const { host } = new URL(address.url)
      try {
        const answer = await askNode({ kind, ...address })
        note(
          shell,
          `✓ ${host}${answer.chain_id === undefined ? '' : ` is on chain ${answer.chain_id}`}`,
        )
        return answer
      } catch (error) {
        note(shell, `! ${host} does not answer: ${(error as Error).message}`)
        return undefined
      }
    }),
  )
