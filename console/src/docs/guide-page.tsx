import { guides } from 'virtual:guide'
import { useEffect } from 'preact/hooks'
import type { Block, Inline } from '../../build/markdown.ts'
import { Code } from '../components/code.tsx'
import { Empty, PageHeader, Skeleton } from '../components/layout.tsx'
import { DocumentLink, Link } from '../components/link.tsx'
import { Problem } from '../components/problem.tsx'
import { Scroll } from '../components/scroll.tsx'
import { useResource } from '../lib/use-resource.ts'

/** One document of the project. */
export function GuidePage({ name }: { name: string }) {
  const guide = guides.find((one) => one.name === name)
  const loaded = useResource(async () => (guide ? await guide.load() : []), [])
  useEffect(() => {
    if (guide) document.title = `${guide.title} · Portolan`
    // The browser could not find the section before the page was there.
    const { hash } = window.location
    if (loaded.data && hash)
      document.getElementById(decodeURIComponent(hash.slice(1)))?.scrollIntoView()
  }, [loaded.data])
  if (!guide)
    return (
      <>
        <PageHeader title="Not found" />
        <Empty title="There is no such document.">
          <Link to="docs">Documentation</Link>
        </Empty>
      </>
    )
  if (!loaded.data)
    return loaded.loading ? (
      <Skeleton lines={12} />
    ) : (
      <Problem error={loaded.error} onRetry={loaded.reload} />
    )
  const headings = loaded.data.filter((block) => block.kind === 'heading' && block.level === 2)
  return (
    <div class="docs-page">
      <article class="prose">
        <Blocks blocks={loaded.data} folder={name.includes('/') ? 'decisions/' : ''} />
      </article>
      {headings.length > 2 && (
        <nav class="docs-contents" aria-label="On this page">
          <h2>On this page</h2>
          {headings.map(
            (block) =>
              block.kind === 'heading' && (
                <a key={block.id} href={`${window.location.pathname}#${block.id}`}>
                  <Inlines parts={block.text} folder="" isPlain />
                </a>
              ),
          )}
        </nav>
      )}
    </div>
  )
}

function Blocks({ blocks, folder }: { blocks: readonly Block[]; folder: string }) {
  return (
    <>
      {blocks.map((block, index) => (
        <OneBlock key={index} block={block} folder={folder} place={index + 1} />
      ))}
    </>
  )
}

function OneBlock(props: { block: Block; folder: string; place: number }) {
  const { block, folder, place } = props
  switch (block.kind) {
    case 'heading': {
      const Heading = `h${Math.min(block.level, 4)}` as 'h2'
      return (
        <Heading id={block.id}>
          <Inlines parts={block.text} folder={folder} />
        </Heading>
      )
    }
    case 'paragraph':
      return (
        <p>
          <Inlines parts={block.text} folder={folder} />
        </p>
      )
    case 'code':
      return (
        <Code
          text={block.text}
          label={`${block.language || 'text'} example, part ${place} of the page`}
        />
      )
    case 'quote':
      return (
        <blockquote>
          <Blocks blocks={block.blocks} folder={folder} />
        </blockquote>
      )
    case 'list': {
      const List = block.ordered ? 'ol' : 'ul'
      return (
        <List>
          {block.items.map((item, index) => (
            <li key={index}>
              <Item blocks={item} folder={folder} />
            </li>
          ))}
        </List>
      )
    }
    case 'table':
      return (
        <Scroll class="table-box" label={`Table, part ${place} of the page`}>
          <table>
            <thead>
              <tr>
                {block.head.map((cell, index) =>
                  cell.length > 0 ? (
                    <th key={index} scope="col">
                      <Inlines parts={cell} folder={folder} />
                    </th>
                  ) : (
                    <td key={index} />
                  ),
                )}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, index) => (
                <tr key={index}>
                  {row.map((cell, column) => (
                    <td key={column}>
                      <Inlines parts={cell} folder={folder} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )
  }
}

/** An item of one paragraph has no paragraph of its own. */
function Item({ blocks, folder }: { blocks: readonly Block[]; folder: string }) {
  const [first, ...rest] = blocks
  if (first?.kind !== 'paragraph') return <Blocks blocks={blocks} folder={folder} />
  return (
    <>
      <Inlines parts={first.text} folder={folder} />
      <Blocks blocks={rest} folder={folder} />
    </>
  )
}

/** Text with code, links and emphasis; `isPlain` leaves out links, where the whole is one. */
function Inlines(props: { parts: readonly Inline[]; folder: string; isPlain?: boolean }) {
  const { parts, folder, isPlain } = props
  return (
    <>
      {parts.map((part, index) => {
        if (typeof part === 'string') return part
        if ('code' in part) return <code key={index}>{part.code}</code>
        if ('strong' in part)
          return (
            <strong key={index}>
              <Inlines {...props} parts={part.strong} />
            </strong>
          )
        if ('em' in part)
          return (
            <em key={index}>
              <Inlines {...props} parts={part.em} />
            </em>
          )
        const text = <Inlines {...props} parts={part.text} isPlain />
        if (isPlain) return text
        if (/^https?:\/\//.test(part.href))
          return (
            <DocumentLink key={index} href={part.href}>
              {text}
            </DocumentLink>
          )
        const to = guideLink(part.href, folder)
        return to ? (
          <Link key={index} to={to}>
            {text}
          </Link>
        ) : (
          <span key={index}>{text}</span>
        )
      })}
    </>
  )
}

/** The page of a link between documents; undefined for files that are not served. */
function guideLink(href: string, folder: string): string | undefined {
  const [file = '', id] = href.split('#')
  if (file === '')
    return id ? `${window.location.pathname.replace(/^.*?\/docs\//, 'docs/')}#${id}` : undefined
  const path = new URL(file, `https://docs.invalid/${folder}`).pathname.slice(1)
  const name = path.replace(/\.md$/, '')
  if (!path.endsWith('.md') || !guides.some((one) => one.name === name)) return undefined
  return `docs/guide/${name}${id ? `#${id}` : ''}`
}
