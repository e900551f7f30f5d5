import { locate } from './locate.ts'

/** The path of `cast`, the command line client of Foundry. */
export const castPath = (): Promise<string> => locate('cast')
