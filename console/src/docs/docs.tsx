// The documents of the service: the API reference made from its OpenAPI document, and the pages of the project. They need
// no credential; with one, every operation can be tried.

import { guides } from 'virtual:guide'
import { useApp } from '../app/context.ts'
import { Frame } from '../components/frame.tsx'
import { Skeleton } from '../components/layout.tsx'
import { Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { BrokenName } from '../components/text.tsx'
import type { OperationDoc } from '../lib/reference.ts'
import { matchPath, pathTo } from '../lib/router.ts'
import { useResource } from '../lib/use-resource.ts'
import '../styles/docs.css'
import { DocsSearch } from './docs-search.tsx'
import { DocsStart } from './docs-start.tsx'
import { GuidePage } from './guide-page.tsx'
import { OperationPage } from './operation-page.tsx'

/** Navigation, search and one document. */
export function Docs() {
  const { router, reference } = useApp()
  const { path } = router.place.value
  const loaded = useResource(() => reference.load(), [])
  const operations = loaded.data?.operations ?? []
  const guide = guideNameOf(path)
  const operation = matchPath('docs/api/:chain/:operation', path)
  const found = operation && loaded.data?.find(operation.chain ?? '', operation.operation ?? '')
  return (
    <Frame
      home="docs"
      navigation={<Contents operations={operations} current={found?.key} guide={guide} />}
      search={<DocsSearch operations={operations} />}
      status={<Link to="">Console</Link>}
      mainClass="docs"
    >
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {guide ? (
        <GuidePage key={guide} name={guide} />
      ) : operation ? (
        loaded.data ? (
          <OperationPage key={path} operation={found} />
        ) : (
          <Skeleton lines={8} />
        )
      ) : (
        <DocsStart operations={operations} />
      )}
    </Frame>
  )
}

/** All operations and documents. */
function Contents(props: {
  operations: readonly OperationDoc[]
  /** The operation that is shown. */
  current: string | undefined
  guide: string | undefined
}) {
  const groups = Map.groupBy(props.operations, ({ tag }) => tag)
  const isDecision = ({ name }: { name: string }) => name.includes('/')
  const linkTo = ({ name, title }: { name: string; title: string }) => (
    <Link key={name} to={`docs/guide/${name}`} isCurrent={name === props.guide}>
      {title}
    </Link>
  )
  return (
    <nav class="nav docs-nav" aria-label="Documents">
      <div>
        <h2>API</h2>
        {[...groups].map(([tag, operations]) => (
          <details key={tag} open={operations.some(({ key }) => key === props.current)}>
            <summary>{tag}</summary>
            {operations.map(({ key, chain, name }) => (
              <Link
                key={key}
                to={pathTo('docs', 'api', chain, name)}
                label={name}
                isCurrent={key === props.current}
              >
                <BrokenName name={name} />
              </Link>
            ))}
          </details>
        ))}
      </div>
      <div>
        <h2>Guide</h2>
        {guides.filter((one) => !isDecision(one)).map(linkTo)}
      </div>
      <details>
        <summary>Decisions</summary>
        {guides.filter(isDecision).map(linkTo)}
      </details>
    </nav>
  )
}

/** The document of an address: `docs/guide/webhooks`, `docs/guide/decisions/events`. */
const guideNameOf = (path: string): string | undefined => /^docs\/guide\/(.+)$/.exec(path)?.[1]
