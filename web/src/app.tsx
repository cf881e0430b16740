// The page around the views: its head, the way between views, and the keys.
import { h, render } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { takeToken, useView } from './ask';
import { Clusterset } from './clusterset';
import { Nodes } from './nodes';
import { change, Route, to, useRoute } from './route';
import { Service } from './service';
import { Services } from './services';
import { Timeline } from './timeline';

// These views ask all contexts.
const ofAll = ['', 'timeline'];

interface Frame { contexts: string[]; version: string; bundle?: string; made?: string }

const views = [
  { path: '', name: 'Clusterset', of: () => <Clusterset /> },
  { path: 'services', name: 'Services', of: (r: Route) => <Services route={r} /> },
  { path: 'nodes', name: 'Nodes', of: (r: Route) => <Nodes route={r} /> },
  { path: 'timeline', name: 'Timeline', of: (r: Route) => <Timeline route={r} /> },
];

function App() {
  const route = useRoute();
  const main = useRef<HTMLElement>(null);
  const frame = useView<Frame>('frame').view;
  const at = route.path[0] ?? '';
  const context = route.values.get('context') ?? '';
  const where = route.path.join('/'), then = route.values.get('at') ?? '';
  const first = useRef(true);
  useEffect(() => {
    document.title = (at === 'service' ? route.path.slice(1).join('/') + (then ? ' in the past' : '') : views.find((v) => v.path === at)?.name ?? 'Not found') + ' · strait';
    if (!first.current) main.current?.querySelector('h1')?.focus();
    first.current = false;
  }, [where, then]);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      const field = document.getElementById('filter');
      if (e.key === '/' && field && !/^(INPUT|SELECT|TEXTAREA)$/.test((e.target as HTMLElement).tagName)) {
        e.preventDefault();
        field.focus();
      }
    };
    addEventListener('keydown', key);
    return () => removeEventListener('keydown', key);
  }, []);
  const view = views.find((v) => v.path === at);
  return <div class="page">
    <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); main.current?.focus(); }}>Skip to the view</a>
    <header>
      <span class="brand">strait</span>
      <nav aria-label="Views"><ul>{views.map((v) => <li key={v.path}>
        <a href={to([v.path].filter(Boolean), { context })} aria-current={v.path === at || v.path === 'services' && at === 'service' ? 'page' : undefined}>{v.name}</a></li>)}</ul></nav>
      {frame && frame.contexts.length > 1 && !ofAll.includes(at) && <label>context <select value={context || frame.contexts[0]}
        onChange={(e) => change({ context: (e.currentTarget as HTMLSelectElement).value })}>{frame.contexts.map((c) => <option key={c}>{c}</option>)}</select></label>}
    </header>
    {frame?.bundle && <p class="banner" role="status">from a support bundle, {frame.bundle}, made {frame.made?.slice(0, 19).replace('T', ' ')} UTC: nothing here changes</p>}
    <main id="main" ref={main} tabIndex={-1}>
      {view ? view.of(route) : at === 'service' && route.path.length === 3 ? <Service route={route} />
        : <div><h1 tabIndex={-1}>Not found</h1><p>This page has no view {where}. <a href="#/">Go to the first one.</a></p></div>}
    </main>
    <footer><p class="muted">This page can change nothing{frame ? ' · strait ' + frame.version : ''} · <kbd>/</kbd> filters</p></footer>
  </div>;
}

takeToken();
render(<App />, document.getElementById('page')!);
