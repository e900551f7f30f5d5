import type { ComponentChildren } from 'preact'

const Icon = (props: { children?: ComponentChildren }) => (
  <svg
    viewBox="0 0 20 20"
    fill="none"
    stroke="currentColor"
    stroke-width="1.6"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    {props.children}
  </svg>
)

/** Three lines: the navigation. */
export const MenuIcon = () => (
  <Icon>
    <path d="M3 5.5h14M3 10h14M3 14.5h14" />
  </Icon>
)

/** A cross: closes. */
export const CloseIcon = () => (
  <Icon>
    <path d="M5 5l10 10M15 5L5 15" />
  </Icon>
)

/** The sun, the moon, or half of both: the theme. */
export const ThemeIcon = ({ choice }: { choice: 'system' | 'light' | 'dark' }) => (
  <Icon>
    {choice === 'dark' ? (
      <path d="M16 11.8A6.5 6.5 0 0 1 8.2 4a6.5 6.5 0 1 0 7.8 7.8z" />
    ) : choice === 'light' ? (
      <>
        <circle cx="10" cy="10" r="3.4" />
        <path d="M10 2.2v1.6M10 16.2v1.6M2.2 10h1.6M16.2 10h1.6M4.5 4.5l1.1 1.1M14.4 14.4l1.1 1.1M15.5 4.5l-1.1 1.1M5.6 14.4l-1.1 1.1" />
      </>
    ) : (
      <>
        <circle cx="10" cy="10" r="6.6" />
        <path d="M10 3.4a6.6 6.6 0 0 1 0 13.2z" fill="currentColor" />
      </>
    )}
  </Icon>
)
