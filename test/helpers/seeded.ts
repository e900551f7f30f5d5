import fc from 'fast-check'

// Property tests examine the same values in every run, so that a failure is of the change that was made. The campaign
// examines others and prints their seed.
fc.configureGlobal({ seed: Number(process.env.PROPERTY_SEED ?? 19) })
