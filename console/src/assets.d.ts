declare module '*.css'
declare module '*.svg' {
  /** The address of the file. */
  const url: string
  export default url
}

declare module 'virtual:guide' {
  export const guides: readonly {
    name: string
    title: string
    load(): Promise<readonly import('../build/markdown.ts').Block[]>
  }[]
}

declare module 'virtual:guide-search' {
  const sections: readonly {
    name: string
    title: string
    heading: string
    id: string
    text: string
  }[]
  export default sections
}
