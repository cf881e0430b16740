// One service: every endpoint with the reason why it is in use or not, now or at a moment of the past, who calls
// it, and what a change would do.
import { h, Fragment } from 'preact';
import { Sheet, useView, Whose } from './ask';
import { Flows } from './flows';
import { Age, Bar, Line, Notes, SeenFrom, Section, Text, TierShare } from './parts';
import { change, Route, to } from './route';
import { Table } from './table';

interface Frontend { addr: string; line: string; shares: TierShare[]; table: Sheet }
interface View {
  whose: Whose; name: string; about: string; policies?: string[]; frontends: Frontend[]; none?: string;
  clusters: string[]; nodes: string[]; past?: string[]; before?: string; next?: string; line: string;
}
interface Nodes { table: Sheet }

// A moment of the past stays as it is; only what came next can become known.
const pastPause = 60_000;

export function Service({ route }: { route: Route }) {
  const context = route.values.get('context') ?? '', from = route.values.get('from') ?? '', at = route.values.get('at') ?? '';
  const name = route.path.slice(1).join('/');
  const answer = useView<View>('service', { name, from, context, at }, at ? pastPause : undefined);
  const nodes = useView<Nodes>('nodes', { context });
  const v = answer.view, then = (moment?: string) => to(route.path, { context, from, at: moment ?? '' });
  return <div class={at ? 'then' : undefined}>
    <h1 tabIndex={-1}>{name}{at && ' in the past'}</h1>
    {at && <div class="banner" role="status">
      <p><b>This is the past</b>, planned again from what was noted. <a href={then()}>Show it as it is now</a></p>
      {v?.past && <>
        <Notes of={v.past} />
        <p>The daemon's turns: <a href={then(v.before)}>the one before</a>{v.next && <> · <a href={then(v.next)}>the next one</a></>}</p>
      </>}
    </div>}
    <Age of={answer} />
    <p class="choose"><label>New connections from <select value={from} onChange={(e) => change({ from: (e.currentTarget as HTMLSelectElement).value })}>
      <option value="">the node that answers</option>
      {(nodes.view?.table.names ?? (from ? [from] : [])).map((n) => <option key={n} value={n}>{n}</option>)}
    </select></label></p>
    {v && <>
      {!at && <SeenFrom whose={v.whose} />}
      <p>{v.about} · <a href={to(['timeline'], { name })}>what changed for it</a></p>
      {v.policies && <p class="muted">shared by policy {v.policies.join(', ')}</p>}
      {v.none && <p><Text of={v.none} /></p>}
      {v.frontends.map((f) => <Section key={f.addr} title={f.addr}>
        <p class="goes"><Bar of={f.shares} /><Text of={f.line.slice(f.line.indexOf(' · ') + 3)} /></p>
        {f.table.rows.length === 0 ? <p class="muted">no endpoint: no exporting cluster has a pod behind this port</p>
          : <Table sheet={f.table} label={'Endpoints of ' + f.addr} plain />}
      </Section>)}
      <Line of={v.line} />
      {!at && <>
        <Flows service={name} />
        <WhatIf route={route} service={name} clusters={v.clusters} nodes={v.nodes} />
      </>}
    </>}
  </div>;
}

interface After { whose: Whose; summary: string[]; moved: Sheet; each: { addr: string; table: Sheet }[]; line: string }

// The kinds of change, with what each is about, as strait explain --what-if takes them.
const kinds: { kind: string; name: string; of: 'clusters' | 'nodes'; write: (target: string, count: string) => string; read: RegExp }[] = [
  { kind: 'down', name: 'a cluster goes away', of: 'clusters', write: (t) => `cluster ${t} down`, read: /^cluster (\S+) down$/ },
  { kind: 'dead', name: 'a node dies', of: 'nodes', write: (t) => `node ${t} dead`, read: /^node (\S+) dead$/ },
  { kind: 'drain', name: 'a cluster is drained', of: 'clusters', write: (t) => `drain ${t}`, read: /^drain ([^/\s]+)$/ },
  { kind: 'drain-node', name: 'a node is drained', of: 'nodes', write: (t) => `drain ${t}`, read: /^drain (\S+\/\S+)$/ },
  { kind: 'scale', name: 'a cluster has this many pods', of: 'clusters', write: (t, n) => `scale ${t} to ${n}`, read: /^scale (\S+) to (\d+)$/ },
];

// WhatIf tries a change, which the address has, and shows what is there now beside what would be.
export function WhatIf({ route, service, clusters, nodes }: { route: Route; service: string; clusters: string[]; nodes: string[] }) {
  const context = route.values.get('context') ?? '', from = route.values.get('from') ?? '', now = route.values.get('if') ?? '';
  const chosen = kinds.find((k) => k.read.test(now));
  const [, target, count] = (chosen && chosen.read.exec(now)) ?? [];
  const answer = useView<After>(now && 'whatif', { change: now, service, from, context });
  const targets = { clusters, nodes }, v = answer.view;
  const set = (kind: string, t: string, n: string) => {
    const k = kinds.find((k) => k.kind === kind);
    change({ if: k ? k.write(targets[k.of].includes(t) ? t : targets[k.of][0] ?? '', n || '1') : '' });
  };
  return <Section title="What if">
    <form class="choose" onSubmit={(e) => e.preventDefault()}>
      <label>What if <select id="whatif" value={chosen?.kind ?? ''} onChange={(e) => set((e.currentTarget as HTMLSelectElement).value, target ?? '', count ?? '')}>
        <option value="">nothing changes</option>
        {kinds.filter((k) => targets[k.of].length > 0).map((k) => <option key={k.kind} value={k.kind}>{k.name}</option>)}
      </select></label>
      {chosen && <label>which <select id="which" value={target} onChange={(e) => set(chosen.kind, (e.currentTarget as HTMLSelectElement).value, count ?? '')}>
        {targets[chosen.of].map((t) => <option key={t} value={t}>{t}</option>)}</select></label>}
      {chosen?.kind === 'scale' && <label>pods <input id="count" type="number" min="0" max="10000" value={count}
        onChange={(e) => set('scale', target ?? '', (e.currentTarget as HTMLInputElement).value)} /></label>}
    </form>
    {now && <>
      <Age of={answer} />
      {v && <div aria-live="polite" class="after">
        {v.summary.map((line) => <p key={line}><Text of={line} /></p>)}
        {v.moved.rows.length > 0 && <Table sheet={v.moved} label="Where connections go now and then" plain />}
        {v.each.map((m) => <Fragment key={m.addr}><h3>{m.addr}</h3><Table sheet={m.table} label={'Shares of ' + m.addr + ' now and then'} plain /></Fragment>)}
        <p class="muted">Nothing was changed.</p>
        <Line of={v.line} />
      </div>}
    </>}
  </Section>;
}
