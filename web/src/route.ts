// Where the page is: a path and values behind "#", so that the address of a view can be kept and sent.
import { useEffect, useState } from 'preact/hooks';

export interface Route { path: string[]; values: URLSearchParams }

function current(): Route {
  const [path, query] = location.hash.slice(1).split('?', 2);
  return { path: path.split('/').filter(Boolean).map(decodeURIComponent), values: new URLSearchParams(query ?? '') };
}

// to makes the address of a view. Values that are empty are left out.
export function to(path: string[], values: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(values).filter(([, v]) => v)).toString();
  return '#/' + path.map(encodeURIComponent).join('/') + (query && '?' + query);
}

// change changes values of the current view's address, without a step to go back to.
export function change(values: Record<string, string>): void {
  const now = current();
  const all = { ...Object.fromEntries(now.values), ...values };
  history.replaceState(null, '', to(now.path, all));
  dispatchEvent(new HashChangeEvent('hashchange'));
}

export function useRoute(): Route {
  const [route, set] = useState(current());
  useEffect(() => {
    const moved = () => set(current());
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, []);
  return route;
}
