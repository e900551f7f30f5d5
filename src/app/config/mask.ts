import { isReference } from './reference.ts'

/** What stands in place of a secret. Refused as a value, so that a printed configuration cannot be used by mistake. */
export const maskText = '********'

/** A secret as it may be shown: references stay, addresses keep what helps to recognise them. */
export const maskSecret = (value: string, mask: 'password' | 'path' | undefined): string => {
  if (isReference(value)) return value
  if (mask === undefined || !URL.canParse(value)) return maskText
  return mask === 'password' ? maskPassword(value) : maskPath(value)
}

const maskPassword = (value: string): string => {
  const url = new URL(value)
  const hidden = [...url.searchParams.keys()].filter((name) => /pass|secret|token|key/i.test(name))
  if (url.password === '' && hidden.length === 0) return value
  if (url.password !== '') url.password = maskText
  for (const name of hidden) url.searchParams.set(name, maskText)
  return url.href
}

// Providers put the access key into the path, the query or the user name.
const maskPath = (value: string): string => {
  const { protocol, host, pathname, search, hash, username, password } = new URL(value)
  const rest = `${pathname === '/' ? '' : pathname}${search}${hash}${username}${password}`
  return rest === '' ? value : `${protocol}//${host}/${maskText}`
}
