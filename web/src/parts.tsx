// What several views have in common: cells with a verdict, bars, the age of a view, and lines to copy.
import { h, ComponentChildren, Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { Answer, stale, useNow, Whose } from './ask';

// The verdicts that a cell or line can begin with: how they are called, for who cannot see them.
const verdicts: Record<string, [string, string]> = {
  '✓': ['ok', 'fine'], '!': ['warn', 'warning'], '✗': ['bad', 'wrong'], '?': ['unknown', 'not known'],
};

export function Glyph({ of }: { of: string }) {
  const verdict = verdicts[of];
  return verdict ? <span class={'glyph ' + verdict[0]}><span aria-hidden="true">{of}</span><span class="spoken">{verdict[1]}: </span></span> : null;
}

// Text shows a cell or line of the CLI, with the verdict that it begins with or that a part of it has.
export function Text({ of }: { of: string }) {
  const parts = of.split(' · ');
  return <span>{parts.map((part, i) => {
    const verdict = part[1] === ' ' && verdicts[part[0]];
    return <span key={i}>{i > 0 && ' · '}{verdict ? <Glyph of={part[0]} /> : null}{verdict ? part.slice(1) : part}</span>;
  })}</span>;
}

// wrong reports whether one of the cells has a verdict that is not fine.
export function wrong(row: string[]): boolean {
  return row.some((cell) => cell.startsWith('✗ ') || cell.startsWith('! '));
}

export interface TierShare { tier: string; share: number }

// Bar shows how new connections are shared among tiers. The text beside it says the same.
export function Bar({ of }: { of: TierShare[] }) {
  return <span class="bar" aria-hidden="true">{of.map((t) =>
    <span key={t.tier} class={'tier-' + t.tier} style={{ width: 100 * t.share + '%' }} title={t.tier + ' ' + (100 * t.share).toFixed(0) + ' %'} />)}</span>;
}

function age(seconds: number): string {
  if (seconds < 60) return Math.floor(seconds) + ' s';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min';
  return (seconds / 3600).toFixed(1) + ' h';
}

// Age says how old what is shown is, and why there is nothing newer.
export function Age({ of }: { of: Answer<unknown> }) {
  const now = useNow();
  const seconds = Math.max(0, (now - of.came) / 1000);
  if (of.view === undefined) {
    return of.error ? <p class="banner" role="alert"><Glyph of="✗" /> {of.error}{of.try && <span class="try">try <code>{of.try}</code></span>}</p>
      : <p class="muted" role="status">asking…</p>;
  }
  if (!of.error && seconds < stale * (of.pause ?? 0) / 1000 + 2 * (of.rest ?? 0)) return null;
  return <p class="banner" role="alert">
    <Glyph of="!" /> stale: what is shown is {age(seconds)} old{of.error ? ': ' + of.error : ''}
    {of.try && <span class="try">try <code>{of.try}</code></span>}
  </p>;
}

export function SeenFrom({ whose }: { whose: Whose }) {
  return <p class="muted">clusterset of {whose.clusters} {whose.clusters === 1 ? 'cluster' : 'clusters'} · seen from <b>{whose.cluster}/{whose.node}</b>
    {whose.computed && ' · computed by another node, which does not see that kernel'}</p>;
}

// Notes are lines of what is missing, or else worth a word.
export function Notes({ of }: { of: string[] }) {
  return <>{of.map((note) => <p key={note}><Text of={note} /></p>)}</>;
}

// Line is the command that shows the same in a terminal.
export function Line({ of }: { of: string }) {
  const [done, set] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(of);
      set('copied');
    } catch {
      set('select the line and copy it');
    }
    setTimeout(() => set(''), 3000);
  };
  return <p class="line"><code>{of}</code> <button type="button" onClick={copy}>Copy</button> <span role="status" class="muted">{done}</span></p>;
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  const id = title.toLowerCase().replace(/\W+/g, '-');
  return <section aria-labelledby={id}><h2 id={id}>{title}</h2>{children}</section>;
}
