import { useMemo, useState } from 'preact/hooks'
import { useAccount, useApp } from '../app/context.ts'
import type { PageProps } from '../app/routes.tsx'
import { Empty, PageHeader, Panel, Skeleton } from '../components/layout.tsx'
import { DocumentLink, Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { BrokenName } from '../components/text.tsx'
import type { Reference } from '../lib/reference.ts'
import { pathTo } from '../lib/router.ts'
import { useResource } from '../lib/use-resource.ts'
import { Operation } from './playground/operation.tsx'

/** Every operation as a form; the request in several languages, and the answer. */
export function Page({ params }: PageProps) {
  const { reference, basePath } = useApp()
  const loaded = useResource(() => reference.load(), [])
  const operation =
    params.chain && params.operation
      ? loaded.data?.find(params.chain, params.operation)
      : // Without a choice it is one that changes nothing.
        loaded.data?.find('admin', 'GetCurrentCredential')
  return (
    <>
      <PageHeader
        title="API playground"
        about={
          <>
            Calls run with your key, on real data.{' '}
            <DocumentLink href={`${basePath}/docs`}>API reference</DocumentLink>
          </>
        }
      />
      <Problem error={loaded.error} onRetry={loaded.reload} />
      {!loaded.data && loaded.loading && <Skeleton lines={8} />}
      {loaded.data && (
        <div class="split">
          <Operations reference={loaded.data} current={operation?.key} />
          {operation ? (
            <Operation key={operation.key} operation={operation} />
          ) : (
            <Empty title="There is no such operation." />
          )}
        </div>
      )}
    </>
  )
}

function Operations(props: { reference: Reference; current: string | undefined }) {
  const { may } = useAccount()
  const [filter, setFilter] = useState('')
  const groups = useMemo(() => {
    const wanted = filter.trim().toLowerCase()
    const found = props.reference.operations.filter(
      ({ key, chain, name, summary }) =>
        may(name, { chain }) && `${key} ${summary}`.toLowerCase().includes(wanted),
    )
    return Map.groupBy(found, ({ tag }) => tag)
  }, [props.reference, filter, may])
  return (
    <Panel>
      <div class="stack">
        <input
          type="search"
          aria-label="Filter operations"
          placeholder="Filter operations"
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <nav class="pick-list" aria-label="Operations">
          {[...groups].map(([tag, operations]) => (
            <div key={tag}>
              <h2>{tag}</h2>
              {operations.map(({ key, chain, name }) => (
                <Link
                  key={key}
                  to={pathTo('playground', chain, name)}
                  label={name}
                  isCurrent={key === props.current}
                >
                  <BrokenName name={name} />
                </Link>
              ))}
            </div>
          ))}
          {groups.size === 0 && <p class="soft">No operation has this in its name.</p>}
        </nav>
      </div>
    </Panel>
  )
}
