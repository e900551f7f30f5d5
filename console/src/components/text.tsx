import { type ComponentChildren, Fragment } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { formatAge, formatTime, formatUnits, shorten, shortenUnits, toTime } from '../lib/format.ts'
import type { Unit } from '../lib/records.ts'
import { Copy } from './copy.tsx'
import { Link } from './link.tsx'

/** How long ago something was, with the exact time on hover. */
export function Time(props: { at: string | number | null | undefined; none?: string }) {
  const [now, setNow] = useState(Date.now)
  const time = toTime(props.at)
  const isRecent = time !== undefined && Math.abs(now - time) < 3_600_000
  useEffect(() => {
    if (!isRecent) return
    const timer = setInterval(() => setNow(Date.now()), 5_000)
    return () => clearInterval(timer)
  }, [isRecent])
  if (time === undefined) return <span class="soft">{props.none ?? '–'}</span>
  return (
    <time dateTime={new Date(time).toISOString()} title={formatTime(time)}>
      {formatAge(time, Math.max(now, Date.now()))}
    </time>
  )
}

/** An amount in its unit: short in the text, exact on hover. */
export function Amount(props: {
  value: string
  unit: Unit
  sign?: '+' | '−' | ''
  /** All digits also in the text. */
  exact?: boolean
}) {
  const exact = formatUnits(props.value, props.unit.decimals)
  const title = `${exact} ${props.unit.symbol}`
  return (
    <span class="amount" title={title} data-sign={props.sign}>
      {props.sign}
      {props.exact ? exact : shortenUnits(exact)} <span class="unit">{props.unit.symbol}</span>
      {props.unit.item !== undefined && (
        <span class="unit"> #{shorten(props.unit.item, 6, 4)}</span>
      )}
    </span>
  )
}

/** An identifier: short, whole on hover, with a copy button and perhaps a link. */
export function Id(props: { value: string; to?: string; whole?: boolean; label?: string }) {
  if (!props.value) return <span class="soft">–</span>
  const text = props.whole ? props.value : shorten(props.value)
  return (
    <span class="id" data-whole={props.whole}>
      {props.to ? (
        <Link to={props.to} title={props.value}>
          <code>{text}</code>
        </Link>
      ) : (
        <code title={props.value}>{text}</code>
      )}
      <Copy text={props.value} label={`Copy ${props.label ?? shorten(props.value)}`} />
    </span>
  )
}

/** A name in camel case that may be broken between its words. */
export const BrokenName = ({ name }: { name: string }) => (
  <>
    {name.split(/(?=[A-Z][a-z])/).map((word, index) => (
      <Fragment key={index}>
        {index > 0 && <wbr />}
        {word}
      </Fragment>
    ))}
  </>
)

/** A sentence of the contract or of a problem: names between backticks are code, as in Markdown. */
export const Words = ({ text }: { text: string }) => (
  <>
    {text
      .split(/`([^`]+)`/)
      .map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}
  </>
)

/** A state in words, coloured by what it means. */
export const Badge = (props: {
  tone?: 'good' | 'bad' | 'warn' | 'sea' | 'plain'
  title?: string | undefined
  children?: ComponentChildren
}) => (
  <span class="badge" data-tone={props.tone ?? 'plain'} title={props.title}>
    {props.children}
  </span>
)
