import { isIPv4 } from 'node:net'

/** Whether only this machine reaches an address, or a host name that is listened on. */
export function isLoopback(host: string): boolean {
  const plain = host.replace(/^::ffff:/i, '')
  return plain === '::1' || plain === 'localhost' || (isIPv4(plain) && plain.startsWith('127.'))
}
