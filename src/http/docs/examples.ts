import recorded from './examples.json' with { type: 'json' }

/** A request and what it answered. */
type Example = { request: object; answer: object }

/** Recorded on a demo by `npm run record-examples`, by service and operation, as `c/GetWallet`. */
export const recordedExamples: Readonly<Record<string, Example>> = recorded

/** The recorded examples; requests that succeed on this installation replace the recorded ones. */
export const examplesWith = (
  requests: Readonly<Record<string, object>>,
): Readonly<Record<string, Partial<Example>>> => ({
  ...recordedExamples,
  ...Object.fromEntries(
    Object.entries(requests).map(([name, request]) => [
      name,
      { ...recordedExamples[name], request },
    ]),
  ),
})
