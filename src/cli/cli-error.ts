/** A command that cannot be done; the message is all that the user sees. */
export class CliError extends Error {
  override name = 'CliError'
  readonly exitCode: number

  constructor(message: string, options: { exitCode?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.exitCode = options.exitCode ?? 1
  }
}

/** A command that was called in a wrong way. */
export const usageError = (message: string): CliError => new CliError(message, { exitCode: 2 })
