// News of the list of runs, and comfort in editors. Everything works without it.
'use strict'

// The server makes rows, and has escaped what is in them.
const rowsOf = event => {
  const rows = document.createElement('tbody')
  rows.innerHTML = event.data
  return [...rows.rows]
}

for (const table of document.querySelectorAll('table[data-news]')) {
  const body = table.tBodies[0]
  const active = document.getElementById('active')
  const note = document.getElementById('news')
  const known = 200
  let address = table.dataset.news
  let source
  let count = 0
  const open = () => {
    if (source) return
    source = new EventSource(address)
    source.onmessage = event => {
      for (const row of rowsOf(event).reverse()) {
        if (document.getElementById(row.id)) continue
        row.classList.add('new')
        body.prepend(row)
        count++
      }
      while (body.rows.length > known) body.lastElementChild.remove()
      if (count) note.textContent = count === 1 ? '1 new run.' : `${count} new runs.`
      const url = new URL(address, location.href)
      url.searchParams.set('after', event.lastEventId)
      address = url.pathname + url.search
    }
    source.addEventListener('active', update)
  }
  // The runs in progress: rows that stay are left alone, as a button of theirs may have the focus.
  const update = event => {
    const rows = rowsOf(event)
    const list = active.querySelector('tbody')
    for (const row of [...list.rows]) if (!rows.some(other => other.id === row.id)) row.remove()
    for (const row of rows.reverse()) if (!document.getElementById(row.id)) list.prepend(row)
    active.hidden = !list.rows.length
  }
  const close = () => {
    source?.close()
    source = undefined
  }
  // A browser has few connections to a server; hidden pages leave theirs to others.
  const follow = () => (document.hidden ? close() : open())
  document.addEventListener('visibilitychange', follow)
  addEventListener('pagehide', close)
  follow()
}

for (const list of document.querySelectorAll('[data-approvals]')) {
  const note = document.getElementById('news')
  let source
  const sections = of => [...of.querySelectorAll('section.pending')]
  const update = async event => {
    const waiting = event.data.split(' ').filter(Boolean).map(id => `approval-${id}`)
    const shown = sections(list).map(section => section.id)
    if (waiting.length === shown.length && waiting.every(id => shown.includes(id))) return
    const response = await fetch(location.href).catch(() => undefined)
    if (!response?.ok || response.redirected) return
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const fresh = page.querySelector('[data-approvals]')
    if (!fresh) return
    const added = sections(fresh).filter(section => !document.getElementById(section.id))
    for (const section of sections(list)) {
      if (fresh.querySelector(`#${section.id}`)) continue
      // Nobody loses what he is writing.
      if (section.contains(document.activeElement)) section.classList.add('decided')
      else section.remove()
    }
    for (const empty of list.querySelectorAll('.empty')) empty.remove()
    added.forEach((section, at) => {
      // Titles are numbered, and name their section.
      const title = section.querySelector('h2')
      title.id = `${section.id}-title`
      section.setAttribute('aria-labelledby', title.id)
      list.insertBefore(document.adoptNode(section), list.children[at] ?? null)
    })
    if (!list.children.length) list.append(...[...fresh.children].map(child => document.adoptNode(child)))
    if (added.length) note.textContent = added.length === 1 ? 'A call waits.' : `${added.length} more calls wait.`
  }
  const open = () => {
    if (source) return
    source = new EventSource(list.dataset.approvals)
    source.onmessage = update
  }
  const close = () => {
    source?.close()
    source = undefined
  }
  const follow = () => (document.hidden ? close() : open())
  document.addEventListener('visibilitychange', follow)
  addEventListener('pagehide', close)
  follow()
}

for (const form of document.querySelectorAll('form.edit')) {
  const area = form.elements.script
  const list = form.querySelector('.diagnostics')
  const gutter = document.createElement('pre')
  gutter.className = 'gutter'
  gutter.setAttribute('aria-hidden', 'true')
  area.before(gutter)
  const number = () => {
    const lines = area.value.split('\n').length
    gutter.textContent = Array.from({ length: lines }, (_, at) => at + 1).join('\n')
    gutter.scrollTop = area.scrollTop
  }
  // The height of the numbers must not make the editor higher.
  const fit = () => { gutter.style.height = `${area.offsetHeight}px` }
  new ResizeObserver(fit).observe(area)
  area.addEventListener('scroll', () => { gutter.scrollTop = area.scrollTop })

  let leaves = false
  area.addEventListener('keydown', event => {
    if (event.key === 'Escape') leaves = true
    else if (event.key === 'Tab' && !leaves && !event.shiftKey && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault()
      // Unlike setRangeText, this can be undone.
      document.execCommand('insertText', false, '  ')
    } else if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      form.querySelector('button[value=run]')?.click()
    } else leaves = false
  })
  area.addEventListener('blur', () => { leaves = false })

  const go = ({ line, column }) => {
    const at = area.value.split('\n').slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + column - 1
    area.focus()
    area.setSelectionRange(at, at)
  }
  let timer
  let latest = 0
  const check = async () => {
    const mine = ++latest
    if (!area.value.trim()) return list.replaceChildren()
    const body = new URLSearchParams(new FormData(form))
    let found
    try {
      const response = await fetch(form.dataset.check, { method: 'POST', body })
      if (!response.ok) return
      found = (await response.json()).diagnostics
    } catch {
      return
    }
    if (mine !== latest) return
    const items = found.map(one => {
      const item = document.createElement('li')
      if (!one.line) {
        item.textContent = `${one.message}${one.hint ? `; ${one.hint}` : ''}`
        return item
      }
      const place = document.createElement('button')
      place.type = 'button'
      place.textContent = `line ${one.line}, column ${one.column}`
      place.addEventListener('click', () => go(one))
      item.append(place, `: ${one.message}${one.hint ? `; ${one.hint}` : ''}`)
      return item
    })
    if (!found.length) {
      const item = document.createElement('li')
      item.className = 'fine'
      item.textContent = 'No mistakes.'
      items.push(item)
    }
    const all = document.createElement('ul')
    all.append(...items)
    list.replaceChildren(all)
  }
  area.addEventListener('input', () => {
    number()
    clearTimeout(timer)
    timer = setTimeout(check, 300)
  })
  number()
}
