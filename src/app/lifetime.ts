/** Something that runs until it is stopped. */
export type Stoppable = { stop(): Promise<void> }

/** Registers a part to be stopped with the service, after everything that was registered later. */
export type Own = <part extends Stoppable>(part: part) => part
