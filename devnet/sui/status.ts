import { GrpcStatusCode, GrpcTypes } from '@mysten/sui/grpc'

/** A refusal, returned to the caller as a gRPC status. */
export class StatusError extends Error {
  override name = 'StatusError'
  readonly code: number
  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** A request that makes no sense. */
export const invalid = (message: string): StatusError =>
  new StatusError(GrpcStatusCode.INVALID_ARGUMENT, message)

/** Something that is not there. */
export const notFound = (message: string): StatusError =>
  new StatusError(GrpcStatusCode.NOT_FOUND, message)

/** A failure on chain: the transaction counts, its sender pays, nothing moves. */
export class ExecutionFailure extends Error {
  override name = 'ExecutionFailure'
  readonly kind: GrpcTypes.ExecutionError_ExecutionErrorKind
  readonly abortCode: bigint | undefined
  constructor(
    kind: keyof typeof GrpcTypes.ExecutionError_ExecutionErrorKind,
    message: string,
    abortCode?: bigint,
  ) {
    super(message)
    this.kind = GrpcTypes.ExecutionError_ExecutionErrorKind[kind]
    this.abortCode = abortCode
  }
}
