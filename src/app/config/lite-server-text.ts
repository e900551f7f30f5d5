const triple = /^(\[[0-9a-fA-F:.]+\]|[^\s/:@]+):([0-9]{1,5}):([A-Za-z0-9+/]{43}=)$/

/** Reads `host:port:key` of a lite server; undefined where the text is something else. */
export const parseLiteServer = (text: string): { url: string; key: string } | undefined => {
  const [, host, port, key] = triple.exec(text) ?? []
  return key === undefined ? undefined : { url: `tcp://${host}:${port}`, key }
}

/** Whether a text is `host:port:key` of a lite server. */
export const isLiteServer = (text: string): boolean => triple.test(text)
