import { confirm, intro, isCancel, log, multiselect, outro, spinner, text } from '@clack/prompts'
import { type Answers, type CheckedNode, chainKinds, type InitTag, urlProblem } from './answers.ts'
import { checkNode } from './check-node.ts'

/** Asks a person; undefined when they break off. */
export async function askAnswers(): Promise<Answers | undefined> {
  intro('Portolan with your own nodes')
  const tags = await multiselect({
    message: 'Which chains?',
    options: (Object.keys(chainKinds) as InitTag[]).map((value) => ({
      value,
      label: chainKinds[value].title,
    })),
    required: true,
  })
  // Nothing is written until the last answer, so that breaking off needs no cleaning up.
  if (isCancel(tags)) return undefined
  const chains: Answers['chains'] = {}
  for (const tag of tags) {
    const nodes = await askNodes(tag)
    if (!nodes) return undefined
    chains[tag] = nodes
  }
  const isServer = await confirm({
    message: 'Use a PostgreSQL server of yours? Otherwise Portolan runs one itself.',
    initialValue: false,
  })
  if (isCancel(isServer)) return undefined
  if (!isServer) return done({ chains })
  const database = await text({
    message: 'Its address, or env:NAME of a variable that holds it',
    placeholder: 'env:DATABASE_URL',
    defaultValue: 'env:DATABASE_URL',
  })
  return isCancel(database) ? undefined : done({ chains, database })
}

function done(answers: Answers): Answers {
  outro('That is all.')
  return answers
}

async function askNodes(tag: InitTag): Promise<CheckedNode[] | undefined> {
  const { title, example } = chainKinds[tag]
  const nodes: CheckedNode[] = []
  for (;;) {
    const url = await text({
      message: nodes.length === 0 ? `${title}: address of a node` : 'Another node? (empty: no)',
      placeholder: nodes.length === 0 ? example : '',
      validate: (value) => {
        if (!value) return nodes.length === 0 ? 'At least one is needed.' : undefined
        return urlProblem(tag, value)
      },
    })
    if (isCancel(url)) return undefined
    if (!url) return nodes
    const asking = spinner()
    asking.start('Asking the node')
    const node = await checkNode(tag, url)
    asking.stop(
      node.problem === undefined
        ? `It answers${node.chain_id === undefined ? '' : `: chain ${node.chain_id}`}.`
        : `It does not answer: ${node.problem}.`,
    )
    // A network whose nodes are of two chains would be refused at the start; here the person can still correct it.
    const known = nodes.find(({ chain_id }) => chain_id !== undefined)?.chain_id
    if (known !== undefined && node.chain_id !== undefined && node.chain_id !== known)
      log.warn(`The other nodes are on chain ${known}: this one is left out.`)
    else nodes.push(node)
  }
}
