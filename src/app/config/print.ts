import { Document, isCollection, isScalar, visit } from 'yaml'
import type { Path } from './finding.ts'
import { mapLeaves } from './leaves.ts'
import { maskSecret } from './mask.ts'
import { rootNode } from './node.ts'
import type { Config } from './schema.ts'
import type { Origin } from './source.ts'
import { pathKey } from './text.ts'

/** The configuration as YAML with every default filled in, secrets masked, and the origin of each value beside it. */
export const printConfig = (config: Config): string => {
  const paths: Path[] = []
  const shown = mapLeaves(rootNode, config, ({ node, path, value }) => {
    paths.push(path)
    return node.secret && typeof value === 'string' ? maskSecret(value, node.mask) : value
  })
  const document = new Document(shown, { aliasDuplicateObjects: false })
  for (const path of paths) {
    const node = document.getIn(path, true)
    const comment = ` ${originText(config.source.origins[pathKey(path)])}`
    if (isScalar(node) || isCollection(node)) node.comment = comment
  }
  // A list or map without entries reads best on one line, where its comment stands too.
  visit(document, {
    Collection: (_, node) => {
      node.flow = node.items.length === 0
    },
  })
  document.commentBefore = config.source.file
    ? ` Configuration file: ${config.source.file}`
    : ' No configuration file.'
  return document.toString({ lineWidth: 0 })
}

const originText = (origin: Origin | undefined): string => {
  if (origin === undefined || origin.from === 'default') return 'default'
  if (origin.from === 'env') return origin.variable
  if (origin.from === 'override') return 'command line'
  return origin.line === undefined ? 'file' : `file, line ${origin.line}`
}
