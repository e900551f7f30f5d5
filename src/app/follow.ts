/** What is made of a value that may be replaced; it is made again only when the value is another one. */
export function follow<value, made>(read: () => value, make: (value: value) => made): () => made {
  let value = read()
  let result = make(value)
  return () => {
    const now = read()
    // Compared by identity: a reload replaces the value as a whole.
    if (now !== value) [value, result] = [now, make(now)]
    return result
  }
}
