import { Scroll } from './scroll.tsx'
import '../styles/machine.css'

const width = 112
const height = 34

type Node = { state: string; x: number; y: number; about: string }

const nodes: readonly Node[] = [
  {
    state: 'CREATED',
    x: 10,
    y: 70,
    about: 'Nonce, gas and price are set. It waits for a signature.',
  },
  { state: 'SIGNED', x: 150, y: 70, about: 'The signature fits the sender. It can be sent.' },
  { state: 'SENDING', x: 290, y: 70, about: 'It is handed to the nodes.' },
  { state: 'SENT', x: 430, y: 70, about: 'A node has it in its pool.' },
  { state: 'MINED', x: 570, y: 70, about: 'It is in a block.' },
  { state: 'CONFIRMED', x: 710, y: 70, about: 'It has its confirmations and succeeded.' },
  { state: 'CANCELED', x: 80, y: 142, about: 'It was canceled before it was sent.' },
  { state: 'REPLACED', x: 430, y: 142, about: 'Another transaction took its nonce.' },
  { state: 'REVERTED', x: 710, y: 142, about: 'It has its confirmations and failed on the chain.' },
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

/** The states of a managed transaction, and which one it is in. */
export function StateMachine(props: { state: string }) {
  const current = props.state.replace('TRANSACTION_STATE_', '')
  const about = nodes.find(({ state }) => state === current)?.about ?? ''
  return (
    <div class="machine">
      <Scroll class="machine-box" label="States of the transaction">
        <svg viewBox="0 54 832 130" role="img" aria-label={`The state is ${current}. ${about}`}>
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
            <Arrow key={`${from} ${to}`} from={from} to={to} />
          ))}
          {/* A reorganization leads back from what was mined. */}
          <path class="machine-back" marker-end="url(#head)" d="M626 70 V60 H486 V70" />
          {nodes.map(({ state, x, y }) => (
            <g key={state} class="machine-state" data-current={state === current}>
              <rect x={x} y={y} width={width} height={height} rx="6" />
              <text x={x + width / 2} y={y + height / 2 + 4} text-anchor="middle">
                {state}
              </text>
            </g>
          ))}
        </svg>
      </Scroll>
      <p>{about}</p>
    </div>
  )
}

function Arrow(props: { from: string; to: string }) {
  const from = nodes.find(({ state }) => state === props.from)!
  const to = nodes.find(({ state }) => state === props.to)!
  const isLevel = from.y === to.y
  const [x1, y1] = isLevel
    ? [from.x + width, from.y + height / 2]
    : [from.x + width / 2, from.y + height]
  const [x2, y2] = isLevel ? [to.x, to.y + height / 2] : [to.x + width / 2, to.y]
  return <line class="machine-arrow" marker-end="url(#head)" x1={x1} y1={y1} x2={x2} y2={y2} />
}
