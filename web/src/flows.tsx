// Who calls a service now: its open connections, on all nodes that are asked.
import { h, Fragment } from 'preact';
import { Sheet, useView } from './ask';
import { Age, Line, Notes, Section, Text } from './parts';
import { Table } from './table';

interface View { seen: string; total: string; clusters: Sheet; table: Sheet; notes: string[]; line: string }

export function Flows({ service }: { service: string }) {
  const answer = useView<View>('flows', { name: service });
  const v = answer.view;
  return <Section title="Live connections">
    <Age of={answer} />
    {v && <>
      <p class="muted">{v.seen}</p>
      {v.total && <p><Text of={v.total} /></p>}
      {v.clusters.rows.length > 0 && <Table sheet={v.clusters} label="Connections by cluster" plain />}
      {v.table.rows.length > 0 ? <Table sheet={v.table} label="Clients and their backends" />
        : <p class="muted">no connection is open now</p>}
      <Notes of={v.notes} />
      <Line of={v.line} />
    </>}
  </Section>;
}
