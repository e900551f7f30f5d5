import { findNearest } from '../../lib/nearest.ts'
import type { Path } from './finding.ts'
import { isRecord } from './layers.ts'
import { mapOf, type Node, rootNode } from './node.ts'
import { pathKey, pathText, shownWord } from './text.ts'

/** The path to name for an unknown key: down to the one key inside it, where a person looks for the typo. */
export const namedPath = (path: Path, value: unknown): Path => {
  let here = path
  let part = value
  while (isRecord(part)) {
    const [first, second] = Object.keys(part)
    if (first === undefined || second !== undefined) break
    here = [...here, first]
    part = part[first]
  }
  return here
}

/** What to write instead of an unknown key, as a sentence. `known` is how many parts of the path exist. */
export const unknownKeyHint = (path: Path, known: number): string => {
  const parent = path.slice(0, known)
  const name = pathKey(path.slice(known))
  const siblings = nodeAt(parent)
  const near = findNearest(name, keysBelow(siblings))
  if (near !== undefined)
    return near === name ? nested(near) : didYouMean(pathText([...parent, near]))
  // The right key in the wrong section, such as `port` at the top.
  const places = [...keysBelow(rootNode)].filter((key) => key.split('.').at(-1) === path.at(-1))
  if (places.length === 1) return didYouMean(places[0]!)
  return `The keys here are ${Object.keys(siblings?.properties ?? {})
    .map(shownWord)
    .join(', ')}.`
}

const didYouMean = (key: string): string => `Did you mean \`${key}\`?`

// A key with a dot in it is one key to YAML.
const nested = (key: string): string => {
  const dot = key.lastIndexOf('.')
  return `Write \`${key.slice(dot + 1)}\` on a line of its own below \`${key.slice(0, dot)}:\`.`
}

const nodeAt = (path: Path): Node | undefined =>
  path.reduce<Node | undefined>(
    (node, part) =>
      node && (node.properties?.[part] ?? mapOf(node)?.entry ?? (node.items as Node | undefined)),
    rootNode,
  )

function* keysBelow(node: Node | undefined, prefix = ''): Generator<string> {
  for (const [name, child] of Object.entries(node?.properties ?? {})) {
    yield prefix + name
    yield* keysBelow(child, `${prefix}${name}.`)
  }
}
