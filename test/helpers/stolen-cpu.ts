import { readFileSync } from 'node:fs'

/**
 * Hundredths of a second that the hypervisor gave to other machines while this one had work; 0 where there is no hypervisor.
 * While it takes half of the CPU or more, which happens for minutes at a time, no figure says anything about the service.
 */
export const stolenTicks = (): number => {
  try {
    return Number(readFileSync('/proc/stat', 'latin1').split('\n', 1)[0]!.trim().split(/ +/)[8])
  } catch {
    return 0
  }
}
