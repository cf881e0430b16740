/*! strait, Apache-2.0; with MiniSearch 7.2.0, MIT, Copyright 2022 Luca Ongaro: docs/site/hugo/assets/minisearch/LICENSE */
// What the pages do beyond being read: search, other versions, and copying commands. Everything else works
// without it.
import MiniSearch from './minisearch/minisearch.js';

const { root, version, page } = document.documentElement.dataset;
const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

// Search. The index is a script, because pages that were opened from a disk may not fetch.
let index;
const loaded = () => index ??= new Promise((resolve, reject) => {
  globalThis.straitIndex = ({ pages, sections }) => {
    const search = new MiniSearch({
      fields: ['heading', 'page', 'text'],
      searchOptions: { boost: { heading: 6, page: 3 }, prefix: true, fuzzy: (term) => (term.length > 4 && !/\d/.test(term) ? 0.2 : false) },
    });
    search.addAll(sections.map((section, id) => ({ id, heading: section.h, page: pages[section.s][1], text: section.t })));
    resolve({ search, pages, sections });
  };
  document.head.append(make('script', { src: `${root}search-index.js`, onerror: () => { index = undefined; reject(); } }));
});

// find returns the sections that have all words, or if none has, those that have any.
const find = ({ search }, query) => {
  const all = search.search(query, { combineWith: 'AND' });
  return all.length > 0 ? all : search.search(query);
};

// marked returns the part of a text around the first of the terms, with all terms marked.
const marked = (text, terms) => {
  const escaped = terms.map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = new RegExp(`(${escaped.sort((a, b) => b.length - a.length).join('|')})`, 'gi');
  const from = Math.max(0, text.search(pattern) - 60), begin = from && text.indexOf(' ', from) + 1;
  const rest = text.slice(begin), part = rest.length > 190 ? rest.slice(0, 190).replace(/\S*$/, '…') : rest;
  const pieces = part.split(pattern).map((piece, i) => (i % 2 ? make('mark', {}, piece) : piece));
  return [begin > 0 ? '… ' : '', ...pieces];
};

const form = document.querySelector('.search'), field = form.querySelector('input'), results = form.querySelector('.results');
const show = async () => {
  const query = field.value.trim();
  results.hidden = query === '';
  if (query === '') return;
  let known;
  try {
    known = await loaded();
  } catch {
    results.replaceChildren(make('p', {}, `The search index cannot be loaded; is ${root}search-index.js there?`));
    return;
  }
  if (query !== field.value.trim()) return; // typed on meanwhile
  const found = find(known, query);
  const count = make('p', { role: 'status' }, found.length === 0 ? `Nothing is about “${query}”.` : `${found.length} section${found.length === 1 ? '' : 's'}`);
  results.replaceChildren(count, ...found.slice(0, 12).map(({ id, terms }) => {
    const section = known.sections[id], [url, label] = known.pages[section.s];
    return make('a', { href: `${root}${url}#${section.a}` },
      make('b', {}, section.h), make('span', {}, section.h === label ? '' : label), make('p', {}, ...marked(section.t, terms)));
  }));
  results.scrollTop = 0;
};
const close = () => { results.hidden = true; };
form.hidden = false;
field.addEventListener('focus', () => { loaded().catch(() => {}); if (field.value) show(); });
field.addEventListener('input', show);
form.addEventListener('submit', (event) => { event.preventDefault(); results.querySelector('a')?.click(); });
form.addEventListener('focusout', ({ relatedTarget }) => { if (relatedTarget && !form.contains(relatedTarget)) close(); });
results.addEventListener('click', close);
document.addEventListener('pointerdown', ({ target }) => { if (!form.contains(target)) close(); });
document.addEventListener('keydown', (event) => {
  const { key, target } = event, at = [field, ...results.querySelectorAll('a')];
  if (key === '/' && !event.ctrlKey && !event.metaKey && !event.altKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) {
    field.focus();
    field.select();
  } else if (key === 'Escape' && form.contains(target)) {
    field.focus();
    close();
  } else if ((key === 'ArrowDown' || key === 'ArrowUp') && at.includes(target) && !results.hidden) {
    at[at.indexOf(target) + (key === 'ArrowDown' ? 1 : -1)]?.focus();
  } else {
    return;
  }
  event.preventDefault();
});

// Versions. From a disk, and where there is no list, the link to the page of all versions stays.
const here = new URL(root || '.', location.href).pathname.split('/').at(-2);
const versions = async () => {
  if (!location.protocol.startsWith('http')) return;
  const answer = await fetch(`${root}../versions.json`);
  if (!answer.ok) return;
  const { latest, versions: all } = await answer.json();
  const visit = async (name) => { // the same page, if that version has it
    const to = `${root}../${name}/`, has = await fetch(to + page, { method: 'HEAD' });
    location.href = to + (has.ok ? page + location.hash : 'index.html');
  };
  const names = [['latest', `latest (${latest})`], ...all.map((name) => [name, name])];
  const select = make('select', { ariaLabel: 'Version' },
    ...names.map(([name, text]) => make('option', { value: name, selected: name === here }, text)));
  select.addEventListener('change', () => visit(select.value));
  document.querySelector('.version').replaceChildren(select);
  if (version !== latest) {
    const link = make('a', { href: `${root}../latest/index.html` }, `The latest version is ${latest}`);
    link.addEventListener('click', (event) => { event.preventDefault(); visit('latest'); });
    document.querySelector('main').prepend(make('p', { className: 'banner' }, `This is about ${version}. `, link, '.'));
  }
};
versions().catch(() => {});

// Copying: only the commands of a block that also shows their output. A page of another host that came
// without TLS may not.
for (const code of navigator.clipboard ? document.querySelectorAll('code.language-sh, code.language-console') : []) {
  const button = make('button', { className: 'copy', type: 'button' }, 'Copy');
  button.addEventListener('click', async () => {
    const copy = code.cloneNode(true);
    for (const part of copy.querySelectorAll('.gp, .go')) part.remove();
    await navigator.clipboard.writeText(copy.textContent.replace(/\n{2,}/g, '\n').trim() + '\n');
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
  code.closest('pre').before(button);
}
