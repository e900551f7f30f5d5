import type { Command } from 'commander'
import { type Word, type Words, wordsOf } from './words.ts'

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
  (( $#choices )) && _describe 'portolan' choices || _files
}
if [[ $funcstack[1] == _portolan ]]; then _portolan "$@"; else compdef _portolan portolan; fi`

const fishScript = (words: Words): string => `# fish completion of portolan
function __portolan_path
  set -l plain (string match -v -- '-*' (commandline -opc)[2..-1])
  test "$plain" = "$argv"
end
${[...words].flatMap(([path, list]) => list.map((word) => fishLine(path, word))).join('\n')}`

const cases = (words: Words, body: (list: readonly Word[]) => string): string =>
  [...words].map(([path, list]) => `    ${quote(path)}) ${body(list)} ;;`).join('\n')

const zshWord = ({ word, meaning }: Word): string =>
  quote(meaning === '' ? word : `${word}:${meaning}`)

const fishLine = (path: string, { word, meaning }: Word): string => {
  const files = word.startsWith('-') ? '' : '-f '
  return `complete -c portolan -n ${quote(`__portolan_path ${path}`.trim())} ${files}-a ${quote(word)} -d ${fishQuote(meaning)}`
}

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
const fishQuote = (text: string): string =>
  `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
