// Tables: the columns and rows of the CLI, which can be sorted and filtered. Of many rows, only those that can
// be seen are in the page.
import { h, ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Sheet } from './ask';
import { Text, wrong } from './parts';

// The height of a row in pixels, and from how many rows on they are virtual. app.css has the height too.
const height = 30, many = 300, around = 12;

interface Properties {
  sheet: Sheet;
  label: string;
  // cell shows a cell in another way than as text, if it returns something.
  cell?: (row: number, column: number) => ComponentChildren;
  filter?: string;
  onlyWrong?: boolean;
  // onCount is told how many rows are shown.
  onCount?: (shown: number) => void;
  // plain tables keep their order.
  plain?: boolean;
  // wrap breaks long cells into lines, unless there are too many rows.
  wrap?: boolean;
}

const collator = new Intl.Collator('en', { numeric: true });

// order returns the indices of the rows to show.
function order(p: Properties, column: number, down: boolean): number[] {
  const words = (p.filter ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const rows = p.sheet.rows;
  const out: number[] = [];
  for (let i = 0; i < rows.length; i++) {
    if (p.onlyWrong && !wrong(rows[i])) continue;
    if (words.length) {
      const text = [...rows[i], p.sheet.names?.[i]].join('\n').toLowerCase();
      if (!words.every((w) => text.includes(w))) continue;
    }
    out.push(i);
  }
  if (column >= 0) out.sort((a, b) => (down ? -1 : 1) * collator.compare(rows[a][column], rows[b][column]) || a - b);
  return out;
}

export function Table(p: Properties) {
  const [sort, setSort] = useState({ column: -1, down: false });
  const [top, setTop] = useState(0);
  const [room, setRoom] = useState(600);
  const box = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => order(p, sort.column, sort.down), [p.sheet, p.filter, p.onlyWrong, sort]);
  const virtual = shown.length > many;
  useLayoutEffect(() => { p.onCount?.(shown.length); }, [shown.length]);
  useLayoutEffect(() => {
    const measure = () => box.current && setRoom(box.current.clientHeight);
    measure();
    addEventListener('resize', measure);
    return () => removeEventListener('resize', measure);
  }, [virtual]);
  const first = virtual ? Math.max(0, Math.min(Math.floor(top / height), shown.length) - around) : 0;
  const end = virtual ? Math.min(shown.length, first + Math.ceil(room / height) + 2 * around) : shown.length;
  const choose = (column: number) => setSort(sort.column !== column ? { column, down: false } : sort.down ? { column: -1, down: false } : { column, down: true });
  return <div class={virtual ? 'box virtual' : p.wrap ? 'box wrap' : 'box'} ref={box} tabIndex={0} role="region" aria-label={p.label}
    onScroll={virtual ? (e) => setTop((e.currentTarget as HTMLElement).scrollTop) : undefined}>
    <table aria-label={p.label} aria-rowcount={virtual ? shown.length + 1 : undefined}>
      <thead><tr aria-rowindex={virtual ? 1 : undefined}>{p.sheet.columns.map((name, c) =>
        <th key={name} scope="col" aria-sort={p.plain ? undefined : sort.column !== c ? 'none' : sort.down ? 'descending' : 'ascending'}>
          {p.plain ? name : <button type="button" class="sort" onClick={() => choose(c)}>{name}<span class="arrow" aria-hidden="true">{sort.column !== c ? '' : sort.down ? '▼' : '▲'}</span></button>}
        </th>)}</tr></thead>
      <tbody>
        {first > 0 && <tr class="space" aria-hidden="true"><td colSpan={p.sheet.columns.length} style={{ height: first * height + 'px' }} /></tr>}
        {shown.slice(first, end).map((row, i) => <tr key={p.sheet.names?.[row] ? p.sheet.names[row] + ' ' + row : row} aria-rowindex={virtual ? first + i + 2 : undefined}>
          {p.sheet.rows[row].map((cell, c) => {
            const inside = p.cell?.(row, c) ?? <Text of={cell} />;
            return c === 0 ? <th key={c} scope="row" title={virtual ? cell : undefined}>{inside}</th> : <td key={c} title={virtual ? cell : undefined}>{inside}</td>;
          })}
        </tr>)}
        {end < shown.length && <tr class="space" aria-hidden="true"><td colSpan={p.sheet.columns.length} style={{ height: (shown.length - end) * height + 'px' }} /></tr>}
        {shown.length === 0 && <tr><td colSpan={p.sheet.columns.length} class="muted">nothing</td></tr>}
      </tbody>
    </table>
  </div>;
}

// Filter is the field above a table.
export function Filter({ value, onInput, onlyWrong, onWrong, shown, all, noun }: {
  value: string; onInput: (v: string) => void; onlyWrong?: boolean; onWrong?: (v: boolean) => void; shown: number; all: number; noun: string;
}) {
  return <div class="filter">
    <label>Filter <input type="search" id="filter" value={value} placeholder="words in any column" autocomplete="off" spellcheck={false}
      onInput={(e) => onInput((e.currentTarget as HTMLInputElement).value)} /></label>
    {onWrong && <label class="check"><input type="checkbox" checked={onlyWrong} onChange={(e) => onWrong((e.currentTarget as HTMLInputElement).checked)} /> only what is not fine</label>}
    <span role="status" class="muted">{shown === all ? all.toLocaleString('en') : shown.toLocaleString('en') + ' of ' + all.toLocaleString('en')} {noun}</span>
  </div>;
}
