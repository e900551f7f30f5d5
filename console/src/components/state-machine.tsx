import { useEffect, useState } from 'preact/hooks'
import '../styles/machine.css'

const width = 112
const height = 34

type Place = readonly [x: number, y: number]
type Node = {
  state: string
  /** On a wide screen, from left to right. */
  wide: Place
  /** On a narrow one, from top to bottom. */
  narrow: Place
  about: string
}

const nodes: readonly Node[] = [
  {
    state: 'CREATED',
    wide: [10, 70],
    narrow: [24, 4],
    about: 'Nonce, gas and price are set. It waits for a signature.',
  },
  {
    state: 'SIGNED',
    wide: [150, 70],
    narrow: [24, 62],
    about: 'The signature fits the sender. It can be sent.',
  },
  { state: 'SENDING', wide: [290, 70], narrow: [24, 120], about: 'It is handed to the nodes.' },
  { state: 'SENT', wide: [430, 70], narrow: [24, 178], about: 'A node has it in its pool.' },
  { state: 'MINED', wide: [570, 70], narrow: [24, 236], about: 'It is in a block.' },
  {
    state: 'CONFIRMED',
    wide: [710, 70],
    narrow: [24, 294],
    about: 'It has its confirmations and succeeded.',
  },
  {
    state: 'CANCELED',
    wide: [80, 142],
    narrow: [184, 33],
    about: 'It was canceled before it was sent.',
  },
  {
    state: 'REPLACED',
    wide: [430, 142],
    narrow: [184, 207],
    about: 'Another transaction took its nonce.',
  },
  {
    state: 'REVERTED',
    wide: [710, 142],
    narrow: [184, 294],
    about: 'It has its confirmations and failed on the chain.',
  },
]

const arrows: readonly (readonly [from: string, to: string])[] = [
  ['CREATED', 'SIGNED'],
  ['SIGNED', 'SENDING'],
  ['SENDING', 'SENT'],
  ['SENT', 'MINED'],
  ['MINED', 'CONFIRMED'],
  ['CREATED', 'CANCELED'],
  ['SIGNED', 'CANCELED'],
  ['SENT', 'REPLACED'],
  ['MINED', 'REPLACED'],
  ['MINED', 'REVERTED'],
]

/** The two drawings. A reorganization leads back from what was mined. */
const layouts = {
  wide: { viewBox: '0 54 832 130', back: 'M626 70 V60 H486 V70' },
  narrow: { viewBox: '0 0 300 334', back: 'M24 253 H10 V195 H22' },
}

/** The states of a managed transaction, and which one it is in. */
export function StateMachine(props: { state: string }) {
  const layout = useIsNarrow() ? 'narrow' : 'wide'
  const current = props.state.replace('TRANSACTION_STATE_', '')
  const about = nodes.find(({ state }) => state === current)?.about ?? ''
  return (
    <div class="machine" data-layout={layout}>
      <svg
        viewBox={layouts[layout].viewBox}
        role="img"
        aria-label={`The state is ${current}. ${about}`}
      >
        <defs>
          <marker
            id="head"
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="7"
            markerHeight="7"
            orient="auto"
          >
            <path class="machine-head" d="M0 0.5 8 4 0 7.5z" />
          </marker>
        </defs>
        {arrows.map(([from, to]) => (
          <Arrow key={`${from} ${to}`} from={placeOf(from, layout)} to={placeOf(to, layout)} />
        ))}
        <path class="machine-back" marker-end="url(#head)" d={layouts[layout].back} />
        {nodes.map(({ state, [layout]: [x, y] }) => (
          <g key={state} class="machine-state" data-current={state === current}>
            <rect x={x} y={y} width={width} height={height} rx="6" />
            <text x={x + width / 2} y={y + height / 2 + 4} text-anchor="middle">
              {state}
            </text>
          </g>
        ))}
      </svg>
      <p>{about}</p>
    </div>
  )
}

const placeOf = (name: string, layout: keyof typeof layouts): Place =>
  nodes.find(({ state }) => state === name)![layout]

/** Between boxes beside each other from side to side, otherwise from the lower edge to the upper one. */
function Arrow({ from, to }: { from: Place; to: Place }) {
  const isLevel = from[1] === to[1] || (to[0] >= from[0] + width && Math.abs(to[1] - from[1]) < 40)
  const [x1, y1] = isLevel
    ? [from[0] + width, from[1] + height / 2]
    : [from[0] + width / 2, from[1] + height]
  const [x2, y2] = isLevel ? [to[0], to[1] + height / 2] : [to[0] + width / 2, to[1]]
  return <line class="machine-arrow" marker-end="url(#head)" x1={x1} y1={y1} x2={x2} y2={y2} />
}

/** Whether the drawing from left to right would be too small to read. */
function useIsNarrow(): boolean {
  const [query] = useState(() => window.matchMedia('(max-width: 760px)'))
  const [isNarrow, setNarrow] = useState(query.matches)
  useEffect(() => {
    const update = () => setNarrow(query.matches)
    query.addEventListener('change', update)
    return () => query.removeEventListener('change', update)
  }, [query])
  return isNarrow
}
