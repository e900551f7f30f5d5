import type { ComponentChildren } from 'preact'
import { useApp } from '../app/context.ts'
import { type Chain, explorerLink } from '../lib/chains.ts'

/** A link to a page of the console. */
export function Link(props: {
  to: string
  class?: string
  title?: string
  /** The name for screen readers, where the text has breaks in it. */
  label?: string
  isCurrent?: boolean
  onClick?: () => void
  children?: ComponentChildren
}) {
  const { router } = useApp()
  return (
    <a
      data-link
      href={router.href(props.to)}
      class={props.class}
      title={props.title}
      aria-label={props.label}
      aria-current={props.isCurrent ? 'page' : undefined}
      onClick={props.onClick}
    >
      {props.children}
    </a>
  )
}

/** A link to what a public explorer of the chain shows; nothing where the chain has none. */
export function ExplorerLink(props: {
  chain: Pick<Chain, 'explorer_url'>
  kind: 'tx' | 'address'
  id: string
}) {
  const href = explorerLink(props.chain, props.kind, props.id)
  return href ? <DocumentLink href={href}>Explorer</DocumentLink> : null
}

/** A link to a document of the service, or of another site, in its own tab. */
export const DocumentLink = (props: { href: string; children?: ComponentChildren }) => (
  <a href={props.href} target="_blank" rel="noreferrer noopener">
    {props.children}
  </a>
)
