// The first view: what needs attention, how clusters reach each other, and clusters and nodes as the CLI lists them.
import { h, Fragment } from 'preact';
import { Sheet, useView } from './ask';
import { Age, Glyph, Line, Section } from './parts';
import { Table } from './table';

interface Attention { glyph: string; code?: string; check: string; message: string; on?: string; try?: string }
interface Cell { glyph: string; text: string; rtt?: number; about: string }
interface Matrix { clusters: string[]; cells: Cell[][] }
interface View { seen: string; attention: Attention[]; checks: number; fine: number; clusters: Sheet; nodes: Sheet; matrix: Matrix; line: string }

export function Clusterset() {
  const answer = useView<View>('clusterset');
  const v = answer.view;
  return <>
    <h1 tabIndex={-1}>Clusterset</h1>
    <Age of={answer} />
    {v && <>
      <p class="muted">seen from {v.seen}</p>
      <Section title="Needs attention">
        <p class="verdict">{v.attention.length === 0 ? <><Glyph of="✓" /> all {v.checks} checks are fine</>
          : <><Glyph of={v.attention[0].glyph} /> {v.checks - v.fine} of {v.checks} checks are not fine</>}</p>
        {v.attention.length > 0 && <ol class="attention">{v.attention.map((a, i) => <li key={i}>
          <p><Glyph of={a.glyph} /> {a.message} {a.code && <span class="code">{a.code}</span>}</p>
          <dl>
            <dt>check</dt><dd>{a.check}</dd>
            {a.on && <><dt>on</dt><dd>{a.on}</dd></>}
            {a.try && <><dt>try</dt><dd>{a.try}</dd></>}
            {a.code && <><dt>more</dt><dd><code>strait help {a.code}</code></dd></>}
          </dl></li>)}</ol>}
        <Line of={v.line} />
      </Section>
      <Section title="Between clusters">
        <p class="muted">the longest round trip from the row's cluster to the column's, inside the tunnels</p>
        <div class="side">
          <Grid of={v.matrix} />
          {v.matrix.clusters.length > 1 && v.matrix.clusters.length <= 8 && <Map of={v.matrix} />}
        </div>
      </Section>
      <Section title="Clusters"><Table sheet={v.clusters} label="Clusters" plain /></Section>
      <Section title="Daemons"><Table sheet={v.nodes} label="Daemons" plain /></Section>
    </>}
  </>;
}

// Four steps of distance, as shades.
function shade(rtt?: number): string {
  if (!rtt) return '';
  return rtt < 2 ? 'near' : rtt < 20 ? 'mid' : rtt < 80 ? 'far' : 'farthest';
}

function Grid({ of }: { of: Matrix }) {
  return <div class="box" tabIndex={0} role="region" aria-label="Round trips between clusters">
    <table class="matrix" aria-label="Round trips between clusters">
      <thead><tr><th scope="col">FROM</th>{of.clusters.map((c) => <th key={c} scope="col">{c}</th>)}</tr></thead>
      <tbody>{of.clusters.map((from, i) => <tr key={from}><th scope="row">{from}</th>
        {of.cells[i].map((c, j) => <td key={j} class={shade(c.rtt)} title={c.about}><Glyph of={c.glyph} /> {c.text}<span class="spoken">, {c.about}</span></td>)}</tr>)}</tbody>
    </table>
  </div>;
}

// Map draws few clusters as a ring. The table beside it says the same, so that it is hidden from readers.
function Map({ of }: { of: Matrix }) {
  const n = of.clusters.length, middle = 110, wide = 260;
  const at = (i: number) => ({ x: wide / 2 + 76 * Math.sin(2 * Math.PI * i / n), y: middle - 76 * Math.cos(2 * Math.PI * i / n) });
  const worst = (a: Cell, b: Cell) => ['✗', '!', '?', '✓'].find((g) => a.glyph === g || b.glyph === g) ?? '';
  const kind: Record<string, string> = { '✗': 'bad', '!': 'warn', '?': 'unknown', '✓': 'ok' };
  return <svg class="map" viewBox={`0 0 ${wide} 220`} width={wide} height="220" aria-hidden="true">
    {of.clusters.map((_, i) => of.clusters.slice(i + 1).map((_, k) => {
      const j = i + 1 + k, a = at(i), b = at(j), glyph = worst(of.cells[i][j], of.cells[j][i]);
      return <g key={i + '-' + j}><line class={kind[glyph]} x1={a.x} y1={a.y} x2={b.x} y2={b.y} />
        <text class={kind[glyph]} x={(a.x + b.x) / 2} y={(a.y + b.y) / 2 - 4}>{glyph}</text></g>;
    }))}
    {of.clusters.map((name, i) => <g key={name}><circle cx={at(i).x} cy={at(i).y} r="7" /><text x={at(i).x} y={at(i).y + (at(i).y > middle + 1 ? 22 : -14)}>{name}</text></g>)}
  </svg>;
}
