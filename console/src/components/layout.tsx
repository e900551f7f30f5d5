import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'

/** The title of a page, what it says of itself, and what can be done on it. */
export function PageHeader(props: {
  title: string
  about?: ComponentChildren
  actions?: ComponentChildren
}) {
  useEffect(() => {
    document.title = `${props.title} · Portolan`
  }, [props.title])
  return (
    <header class="page-header">
      <div>
        <h1>{props.title}</h1>
        {props.about && <div class="about">{props.about}</div>}
      </div>
      {props.actions && <div class="actions">{props.actions}</div>}
    </header>
  )
}

/** A part of a page with a title. */
export const Panel = (props: {
  title?: string
  actions?: ComponentChildren
  flush?: boolean
  class?: string
  children?: ComponentChildren
}) => (
  <section class={`panel ${props.class ?? ''}`} data-flush={props.flush}>
    {(props.title || props.actions) && (
      <div class="panel-head">
        {props.title && <h2>{props.title}</h2>}
        {props.actions && <div class="actions">{props.actions}</div>}
      </div>
    )}
    <div class="panel-body">{props.children}</div>
  </section>
)

/** What an empty list says: why it is empty, and what to do. */
export const Empty = (props: { title: string; children?: ComponentChildren }) => (
  <div class="empty">
    <p class="empty-title">{props.title}</p>
    {props.children && <div>{props.children}</div>}
  </div>
)

/** Grey lines in place of what is loaded. */
export const Skeleton = (props: { lines?: number }) => (
  <div class="skeleton" role="status" aria-label="Loading">
    {Array.from({ length: props.lines ?? 3 }, (_, index) => (
      <span key={index} />
    ))}
  </div>
)

/** Names and values. */
export const Facts = (props: {
  rows: readonly (readonly [string, ComponentChildren] | false | undefined | '')[]
}) => (
  <dl class="facts">
    {props.rows.map((row) =>
      row ? (
        <div key={row[0]}>
          <dt>{row[0]}</dt>
          <dd>{row[1]}</dd>
        </div>
      ) : null,
    )}
  </dl>
)

/** A number with its name. */
export const Stat = (props: {
  label: string
  value: ComponentChildren
  note?: ComponentChildren
  tone?: 'good' | 'bad' | 'warn' | undefined
}) => (
  <div class="stat" data-tone={props.tone}>
    <p class="stat-label">{props.label}</p>
    <p class="stat-value">{props.value}</p>
    {props.note && <p class="stat-note">{props.note}</p>}
  </div>
)
