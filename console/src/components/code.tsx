import { Copy } from './copy.tsx'
import { Scroll } from './scroll.tsx'

/** A block of text or code that can be copied. It is always text, whatever is in it. */
export const Code = (props: { text: string; label: string }) => (
  <div class="code">
    <Scroll class="code-box" label={props.label}>
      <pre>
        <code>{props.text}</code>
      </pre>
    </Scroll>
    <Copy text={props.text} wide label={`Copy ${props.label}`} />
  </div>
)
