// All services, and where new connections to them go.
import { h, Fragment } from 'preact';
import { useCallback, useState } from 'preact/hooks';
import { Sheet, useView, Whose } from './ask';
import { Age, Bar, Line, SeenFrom, Text, TierShare } from './parts';
import { change, Route, to } from './route';
import { Filter, Table } from './table';

interface View { whose: Whose; table: Sheet; shares: TierShare[][]; line: string }

export const tiers = ['node', 'zone', 'region', 'cluster', 'clusterset', 'unreachable'];

export function Services({ route }: { route: Route }) {
  const context = route.values.get('context') ?? '';
  const answer = useView<View>('services', { context });
  const [shown, setShown] = useState(0);
  const v = answer.view;
  const goes = v ? v.table.columns.indexOf('NEW CONNECTIONS GO TO') : -1;
  const cell = useCallback((row: number, column: number) => {
    if (!v) return null;
    if (column === 0) return <a href={to(['service', ...v.table.names![row].split('/')], { context })}>{v.table.rows[row][0]}</a>;
    if (column === goes) return <><Bar of={v.shares[row]} /><Text of={v.table.rows[row][column]} /></>;
  }, [v, context]);
  return <>
    <h1 tabIndex={-1}>Services</h1>
    <Age of={answer} />
    {v && <>
      <SeenFrom whose={v.whose} />
      <Filter value={route.values.get('q') ?? ''} onInput={(q) => change({ q })} onlyWrong={route.values.get('wrong') === '1'}
        onWrong={(w) => change({ wrong: w ? '1' : '' })} shown={shown} all={v.table.rows.length} noun={v.table.rows.length === 1 ? 'service' : 'services'} />
      <p class="legend" aria-hidden="true">{tiers.map((t) => <span key={t}><span class={'swatch tier-' + t} /> {t}</span>)}</p>
      <Table sheet={v.table} label="Services" cell={cell} filter={route.values.get('q') ?? ''} onlyWrong={route.values.get('wrong') === '1'} onCount={setShown} />
      {v.table.rows.length === 0 && <p class="muted">No service is shared yet: create a Service and a ServiceExport of the same name in any cluster.</p>}
      <Line of={v.line} />
    </>}
  </>;
}
