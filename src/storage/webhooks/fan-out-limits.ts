/** How many notifications a block's own transaction writes for one organization. */
export type FanOutLimits = {
  /** So many are always written at once. */
  inline: number
  /** More than those, as long as there are so many for each transaction at most. */
  perEvent: number
}

/** Writing so many costs the other organizations of the block a few milliseconds. */
export const usualFanOut: FanOutLimits = { inline: 256, perEvent: 4 }
