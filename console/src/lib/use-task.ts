import { useState } from 'preact/hooks'

/** Work of a form or a button: whether it runs, and why it failed the last time. */
export type Task<Args extends unknown[]> = {
  busy: boolean
  error: unknown
  run(...args: Args): Promise<void>
  /** Removes the failure. */
  forget(): void
}

/** Runs work over the network, and keeps its state for the component. */
export function useTask<Args extends unknown[]>(
  work: (...args: Args) => Promise<unknown>,
): Task<Args> {
  const [state, setState] = useState<{ busy: boolean; error?: unknown }>({ busy: false })
  const run = async (...args: Args) => {
    setState({ busy: true })
    try {
      await work(...args)
      setState({ busy: false })
    } catch (error) {
      setState({ busy: false, error })
    }
  }
  return { busy: state.busy, error: state.error, run, forget: () => setState({ busy: false }) }
}

/** The same for a form; the work gets its fields as texts without spaces around them. */
export function useForm(work: (field: (name: string) => string) => Promise<unknown>): {
  busy: boolean
  error: unknown
  submit(event: Event): void
} {
  const { busy, error, run } = useTask(work)
  return {
    busy,
    error,
    submit: (event) => {
      event.preventDefault()
      const form = new FormData(event.currentTarget as HTMLFormElement)
      void run((name) => String(form.get(name) ?? '').trim())
    },
  }
}
