/** A fenced block of a document. */
export type Block = {
  language: string
  text: string
  /** Why a test does not run it: what the comment before it says. */
  notRun: string | undefined
  /** The line of its first line in the document. */
  line: number
}

const pattern = /^(?:<!-- not run: ([^\n]*) -->\n)?```(\w*)\n([\s\S]*?)^```$/gm

/** The fenced blocks of a document, in order. */
export const blocksOf = (document: string): Block[] =>
  [...document.matchAll(pattern)].map(
    ({ 0: whole, 1: notRun, 2: language = '', 3: text = '', index }) => ({
      ...{ language, text, notRun },
      line: document.slice(0, index + whole.indexOf(text)).split('\n').length,
    }),
  )
