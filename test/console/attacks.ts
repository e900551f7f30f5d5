/** Texts that would run if they were ever parsed as markup or code: each vector behind each way out of a place. */
export function attacks(): string[] {
  const run = 'window.attacked=1'
  const vectors = [
    `<img src=x onerror=${run}>`,
    `<svg onload=${run}>`,
    `<script>${run}</script>`,
    `<iframe srcdoc="<script>parent.attacked=1</script>">`,
    `<body onload=${run}>`,
    `<details open ontoggle=${run}>`,
    `<input autofocus onfocus=${run}>`,
    `<video><source onerror=${run}>`,
    `<a href=javascript:${run}>a</a>`,
    `<style onload=${run}>`,
    `<marquee onstart=${run}>`,
    `<object data=javascript:${run}>`,
    `<embed src=javascript:${run}>`,
    `<link rel=stylesheet href=x onerror=${run}>`,
    `<math><mi xlink:href=javascript:${run}>`,
    `javascript:${run}`,
    `-${run}-`,
    `\${${run}}`,
    `{{constructor.constructor("${run}")()}}`,
    `<b style=background:url(//x.test)>${run}`,
  ]
  const exits = ['', '"', "'", '`', '"><', '</td>', '</title>', '-->', ']]>', '&lt;']
  return exits.flatMap((exit) => vectors.map((vector) => exit + vector))
}
