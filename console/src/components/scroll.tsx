import type { ComponentChildren } from 'preact'

/** A part of a page that scrolls by itself, which is why the keyboard reaches it. */
export const Scroll = (props: { label: string; class: string; children?: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: without a place in the order it cannot be scrolled by keys
  <section class={props.class} tabIndex={0} aria-label={props.label}>
    {props.children}
  </section>
)
