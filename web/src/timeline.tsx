// What changed and why, the newest first: a row for each cause, with links to the services that it changed.
import { h, Fragment } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import { Sheet, useView } from './ask';
import { Age, Line, Notes } from './parts';
import { change, Route, to } from './route';
import { Filter, Table } from './table';

interface Event { services: string[]; more?: number; at?: string; context?: string }
interface View { seen: string; zone: string; table: Sheet; events: Event[]; notes: string[]; line: string }

// The times to choose from, as strait timeline --since takes them, and how often the page asks.
const times: Record<string, string> = { '15m': '15 minutes ago', '1h': '1 hour ago', all: 'the oldest note' };
const usual = '1h', pause = 5000;

export function Timeline({ route }: { route: Route }) {
  const name = route.values.get('name') ?? '', since = route.values.get('since') || usual, q = route.values.get('q') ?? '';
  const answer = useView<View>('timeline', { name, since }, pause);
  const [shown, setShown] = useState(0);
  const v = answer.view;
  const effect = v ? v.table.columns.indexOf('EFFECT') : -1;
  const cell = useCallback((row: number, column: number) => v && column === effect && v.events[row].services.length > 0
    ? <Effect text={v.table.rows[row][column]} of={v.events[row]} time={v.table.rows[row][0]} /> : null, [v]);
  return <>
    <h1 tabIndex={-1}>Timeline</h1>
    <Age of={answer} />
    <form class="choose" onSubmit={(e) => e.preventDefault()}>
      <label>Since <select id="since" value={since} onChange={(e) => change({ since: (e.currentTarget as HTMLSelectElement).value })}>
        {[...new Set([...Object.keys(times), since])].map((t) => <option key={t} value={t}>{times[t] ?? t}</option>)}
      </select></label>
      <label>About <input id="about" type="search" value={name} placeholder="a service, cluster or node" autocomplete="off" spellcheck={false}
        onChange={(e) => change({ name: (e.currentTarget as HTMLInputElement).value.trim() })} /></label>
    </form>
    {v && <>
      <p class="muted">{v.seen}; times are by the clocks of nodes, in {v.zone}</p>
      <Filter value={q} onInput={(q) => change({ q })} shown={shown} all={v.table.rows.length} noun={v.table.rows.length === 1 ? 'cause' : 'causes'} />
      {v.table.rows.length > 0 ? <Table sheet={v.table} label="What changed" cell={cell} filter={q} onCount={setShown} plain wrap />
        : <p class="muted">Nothing changed{name && ' that is about ' + name} in this time.</p>}
      <Notes of={v.notes} />
      <Line of={v.line} />
    </>}
  </>;
}

// Effect is what became of services, with a link to each. The text has the first one's name.
function Effect({ text, of, time }: { text: string; of: Event; time: string }) {
  const [first, ...others] = of.services, at = text.indexOf(first);
  return <>{at < 0 ? text + ' · ' : text.slice(0, at)}<Service name={first} of={of} time={time} />{at >= 0 && text.slice(at + first.length)}
    {others.map((s) => <Fragment key={s}> · <Service name={s} of={of} time={time} /></Fragment>)}{of.more ? ` · ${of.more} more` : ''}</>;
}

function Service({ name, of, time }: { name: string; of: Event; time: string }) {
  const path = ['service', ...name.split('/')], context = of.context ?? '';
  return <><a href={to(path, { context })}>{name}</a>{of.at && <> (<a href={to(path, { context, at: of.at })} aria-label={`then: ${name} at ${time}`}>then</a>)</>}</>;
}
