// All nodes of the clusterset, and what the tunnels from each node of the asked cluster carry.
import { h, Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { Sheet, useView, Whose } from './ask';
import { Age, Line, Notes, SeenFrom, Section } from './parts';
import { change, Route } from './route';
import { Filter, Table } from './table';

interface View { whose: Whose; table: Sheet; notes: string[]; from?: Sheet; line: string }

export function Nodes({ route }: { route: Route }) {
  const answer = useView<View>('nodes', { context: route.values.get('context') ?? '' });
  const [shown, setShown] = useState(0);
  const v = answer.view;
  return <>
    <h1 tabIndex={-1}>Nodes</h1>
    <Age of={answer} />
    {v && <>
      <SeenFrom whose={v.whose} />
      <Filter value={route.values.get('q') ?? ''} onInput={(q) => change({ q })} onlyWrong={route.values.get('wrong') === '1'}
        onWrong={(w) => change({ wrong: w ? '1' : '' })} shown={shown} all={v.table.rows.length} noun={v.table.rows.length === 1 ? 'node' : 'nodes'} />
      <Table sheet={v.table} label="Nodes" filter={route.values.get('q') ?? ''} onlyWrong={route.values.get('wrong') === '1'} onCount={setShown} />
      <Notes of={v.notes} />
      {v.from && <Section title="Tunnels"><p class="muted">what the tunnel from the row's node to the column's carries, and its round trip</p>
        <Table sheet={v.from} label="Tunnels from each node" plain /></Section>}
      <Line of={v.line} />
    </>}
  </>;
}
