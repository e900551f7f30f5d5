import type { GrpcTypes } from '@mysten/sui/grpc'

type MessageType = typeof GrpcTypes.Checkpoint | typeof GrpcTypes.ExecutedTransaction
// biome-ignore lint/suspicious/noExplicitAny: messages of any type go through here
type AnyMessage = any
type Tree = { [field: string]: Tree | true }

const treeOf = (paths: readonly string[]): Tree => {
  const tree: Tree = {}
  for (const path of paths) {
    const names = path.split('.')
    let at = tree
    for (const [index, name] of names.entries()) {
      if (at[name] === true) break
      if (index === names.length - 1) at[name] = true
      else {
        const below = at[name] ?? {}
        at[name] = below
        at = below
      }
    }
  }
  return tree
}

const cut = (type: AnyMessage, message: AnyMessage, tree: Tree | true): AnyMessage => {
  if (tree === true || tree['*']) return message
  const out = type.create()
  for (const field of type.fields) {
    const wanted = tree[field.name]
    if (!wanted) continue
    if (field.oneof) {
      if (message[field.oneof]?.oneofKind === field.localName)
        out[field.oneof] = message[field.oneof]
      continue
    }
    const value = message[field.localName]
    if (value === undefined) continue
    out[field.localName] =
      field.kind !== 'message' || wanted === true
        ? value
        : field.repeat
          ? value.map((one: AnyMessage) => cut(field.T(), one, wanted))
          : cut(field.T(), value, wanted)
  }
  return out
}

/** Leaves of a message only what a read mask names; without one what is usual. */
export const applyMask = <message extends object>(
  type: { create(value?: Partial<message>): message } & Pick<MessageType, 'fields'>,
  message: message,
  mask: { paths: string[] } | undefined,
  usual: readonly string[],
): message => cut(type, message, treeOf(mask && mask.paths.length > 0 ? mask.paths : usual))
