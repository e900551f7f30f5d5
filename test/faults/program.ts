import { parseArgs } from 'node:util'

/** Numbers from the command line, such as `--seeds 20 --seed 7`, or their defaults. */
export function readNumbers<name extends string>(
  defaults: Readonly<Record<name, number>>,
): Record<name, number> {
  const names = Object.keys(defaults) as name[]
  const options = Object.fromEntries(names.map((name) => [name, { type: 'string' as const }]))
  const { values } = parseArgs({ options })
  const read = (name: name) => Number(values[name] ?? defaults[name])
  return Object.fromEntries(names.map((name) => [name, read(name)])) as Record<name, number>
}

/** Runs seed after seed, and adds up what they count. */
export async function runSeeds(
  { seed: first, seeds }: { seed: number; seeds: number },
  run: (seed: number) => Promise<Readonly<Record<string, number>>>,
): Promise<Record<string, number>> {
  const total: Record<string, number> = { seeds: 0 }
  for (let seed = first; seed < first + seeds; seed++) {
    const counts = { seeds: 1, ...(await run(seed)) }
    for (const [name, count] of Object.entries(counts)) total[name] = (total[name] ?? 0) + count
    console.log(`seed ${seed}:`, JSON.stringify(total))
  }
  return total
}
