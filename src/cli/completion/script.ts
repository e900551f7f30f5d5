import type { Command } from 'commander'
import { catalogue } from '../../contract/operations/catalogue.ts'
import { chainCommands } from './words.ts'

/** The completion script of a shell for a tree of commands. */
export function completionScript(program: Command, shell: 'bash' | 'zsh' | 'fish'): string {
  const words = wordsOf(program)
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](words)
}

// All three look the words before the cursor up, without options, and fall back to file names.

const bashScript = (words: Words): string => `# bash completion of portolan
_portolan() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $word == -* ]] || path="\${path:+$path }$word"
  done
  local choices=""
  case "$path" in
${cases(words, (list) => `choices="${list.map(({ word }) => word).join(' ')}"`)}
  esac
  case "$path" in
    ${dynamicPaths}) choices="$choices $(portolan __words $path 2>/dev/null)" ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$current")
}
complete -o default -F _portolan portolan`

const zshScript = (words: Words): string => `#compdef portolan
_portolan() {
  local -a plain choices
  plain=(\${\${words[2,CURRENT-1]}:#-*})
  case "\${(j: :)plain}" in
${cases(words, (list) => `choices=(${list.map(zshWord).join(' ')})`)}
  esac
  case "\${(j: :)plain}" in
    ${dynamicPaths}) choices+=(\${(f)"$(portolan __words $plain 2>/dev/null)"}) ;;
  esac
  (( $#choices )) && _describe 'portolan' choices || _files
}
if [[ $funcstack[1] == _portolan ]]; then _portolan "$@"; else compdef _portolan portolan; fi`

const fishScript = (words: Words): string => `# fish completion of portolan
function __portolan_path
  set -l plain (string match -v -- '-*' (commandline -opc)[2..-1])
  test "$plain" = "$argv"
end
function __portolan_words
  portolan __words (string match -v -- '-*' (commandline -opc)[2..-1]) 2>/dev/null
end
complete -c portolan -n '__fish_seen_subcommand_from ${chainCommands.join(' ')}' -f -a '(__portolan_words)'
${[...words].flatMap(([path, list]) => list.map((word) => fishLine(path, word))).join('\n')}`

// A chain, or an operation of one.
const dynamicPaths = `${chainCommands.join('|')}|call\\ *`

// One case per sequence of words, so that the scripts need no program to complete commands.
const cases = (words: Words, body: (list: readonly Word[]) => string): string =>
  [...words].map(([path, list]) => `    ${quote(path)}) ${body(list)} ;;`).join('\n')

const zshWord = ({ word, meaning }: Word): string =>
  quote(meaning === '' ? word : `${word}:${meaning}`)

// `-f` keeps fish from offering file names beside the word.
const fishLine = (path: string, { word, meaning }: Word): string => {
  const files = word.startsWith('-') ? '' : '-f '
  return `complete -c portolan -n ${quote(`__portolan_path ${path}`.trim())} ${files}-a ${quote(word)} -d ${fishQuote(meaning)}`
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const fishQuote = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** A word that may come next, and what it means. */
export type Word = { word: string; meaning: string }

/** What may come after each sequence of words; the key is the words, joined by spaces. */
export type Words = ReadonlyMap<string, readonly Word[]>

/** All that can be completed: the tree of commands, and the operations for `call`. */
export function wordsOf(program: Command): Words {
  const words = new Map<string, readonly Word[]>()
  const visit = (command: Command, path: string): void => {
    const own = command.commands.flatMap((child) => [
      ...(child.name() === 'help' || child.name().startsWith('_')
        ? []
        : [wordOf(child.name(), child.summary(), child)]),
    ])
    const options = [...command.options, ...(command === program ? [] : program.options)]
    const flags = options.flatMap(({ long, description }) =>
      long === '--version' && command !== program
        ? []
        : [{ word: long ?? '', meaning: description }],
    )
    const choices = command.registeredArguments.flatMap((argument) => argument.argChoices ?? [])
    words.set(path, [
      ...own,
      ...choices.map((word) => ({ word, meaning: '' })),
      ...flags,
      { word: '--help', meaning: 'explain the command' },
    ])
    for (const child of command.commands)
      if (!child.name().startsWith('_')) visit(child, `${path} ${child.name()}`.trim())
  }
  visit(program, '')
  addOperations(words)
  return words
}

const wordOf = (word: string, summary: string, command: Command): Word => ({
  word,
  meaning: summary || command.description(),
})

function addOperations(words: Map<string, readonly Word[]>): void {
  const services = Map.groupBy(catalogue, ({ service }) => service)
  const call = words.get('call') ?? []
  const names = [...services.keys()].map((word) => ({ word, meaning: 'service' }))
  words.set('call', [...names, ...call])
  for (const [service, entries] of services)
    words.set(`call ${service}`, [
      ...entries.map(({ name, row }) => ({ word: name, meaning: row.summary })),
      ...call,
    ])
}
