// How the page asks strait ui for views: one question at a time for each view that is shown, every two
// seconds, and none while the page is hidden.
import { useEffect, useRef, useState } from 'preact/hooks';

const every = 2000;
// A view that is older than this many times its pause is stale, beside the time for which strait ui makes no newer one.
export const stale = 3;

const kept = 'strait-token';

// takeToken moves the token from the address to where other tabs of this page find it.
export function takeToken(): void {
  const given = /^#token=(.+)$/.exec(location.hash);
  if (given) {
    localStorage.setItem(kept, given[1]);
    history.replaceState(null, '', location.pathname + '#/');
  }
}

export interface Sheet { columns: string[]; rows: string[][]; names?: string[] }
export interface Whose { cluster: string; node: string; clusters: number; computed?: boolean }

// Answer is what is known of a view now.
export interface Answer<V> {
  view?: V;
  // came is when the view was new, by this browser's monotonic clock.
  came: number;
  rest?: number;
  // pause is how long the page waits until it asks again, in ms.
  pause?: number;
  error?: string;
  try?: string;
}

const lost = 'strait ui does not answer';

async function ask<V>(path: string, last: Answer<V> & { tag?: string }, signal: AbortSignal): Promise<Answer<V> & { tag?: string }> {
  let response: Response, body: { view?: V; tag?: string; age: number; rest?: number; error?: string; try?: string };
  try {
    response = await fetch('api/' + path + (last.tag ? (path.includes('?') ? '&' : '?') + 'tag=' + last.tag : ''),
      { headers: { 'X-Strait-Token': localStorage.getItem(kept) ?? '' }, signal });
    body = await response.json();
  } catch (e) {
    if (signal.aborted) throw e;
    return { ...last, error: lost, try: 'see whether it still runs, and open the address that it prints' };
  }
  if (!response.ok) return { ...last, error: body.error, try: body.try };
  const view = body.view ?? (body.tag === last.tag ? last.view : undefined);
  return { view, tag: body.tag, came: performance.now() - 1000 * body.age, rest: body.rest, error: body.error, try: body.try };
}

// useView asks for a view as long as it is shown, again after a pause. Its parameters that are empty are left out.
export function useView<V>(name: string, parameters: Record<string, string> = {}, pause = every): Answer<V> {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, v]) => v)).toString();
  const path = name && name + (query && '?' + query);
  const [state, set] = useState<{ path: string; answer: Answer<V> }>({ path, answer: { came: 0 } });
  const last = useRef<Answer<V>>({ came: 0 });
  useEffect(() => {
    if (!path) return;
    const end = new AbortController();
    let timer = 0, busy = false;
    last.current = { came: 0 };
    const look = async () => {
      clearTimeout(timer);
      if (busy || document.hidden) return;
      busy = true;
      try {
        last.current = await ask<V>(path, last.current, end.signal);
        set({ path, answer: last.current });
        timer = setTimeout(look, last.current.error ? every : pause) as unknown as number;
      } catch { /* the view is not shown any more */ }
      busy = false;
    };
    const seen = () => { if (!document.hidden) look(); };
    document.addEventListener('visibilitychange', seen);
    look();
    return () => { end.abort(); clearTimeout(timer); document.removeEventListener('visibilitychange', seen); };
  }, [path, pause]);
  return { ...(state.path === path ? state.answer : { came: 0 }), pause };
}

// useNow renders again every second, for ages.
export function useNow(): number {
  const [now, set] = useState(performance.now());
  useEffect(() => {
    const timer = setInterval(() => set(performance.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}
