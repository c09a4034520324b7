// The address is the state: what is shown can be copied from the address bar.
import { createContext, useContext, useEffect, useState } from "react";
import type { AnchorHTMLAttributes } from "react";

export interface Route {
  path: string[];
  query: URLSearchParams;
}

const MOVED = "interlock:moved";

function here(): Route {
  const path = window.location.pathname.replace(/^\/console\/?/, "").replace(/\/$/, "");
  return { path: path ? path.split("/").map(decodeURIComponent) : [], query: new URLSearchParams(window.location.search) };
}

export function go(to: string, replace = false): void {
  if (replace) window.history.replaceState(null, "", to);
  else window.history.pushState(null, "", to);
  window.dispatchEvent(new Event(MOVED));
}

export function useRouter(): Route {
  const [route, setRoute] = useState(here);
  useEffect(() => {
    const moved = () => setRoute(here());
    window.addEventListener("popstate", moved);
    window.addEventListener(MOVED, moved);
    return () => {
      window.removeEventListener("popstate", moved);
      window.removeEventListener(MOVED, moved);
    };
  }, []);
  return route;
}

export const RouteContext = createContext<Route>({ path: [], query: new URLSearchParams() });
export const useRoute = () => useContext(RouteContext);

/** Change a part of the query and keep the rest. */
export function withQuery(route: Route, changes: Record<string, string | null>): string {
  const query = new URLSearchParams(route.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const search = query.toString();
  return `/console/${route.path.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export function Link({ to, onClick, ...rest }: { to: string } & AnchorHTMLAttributes<HTMLAnchorElement>) {
  return (
    <a
      href={to}
      onClick={(event) => {
        onClick?.(event);
        if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go(to);
        const [, part] = to.split("#");
        if (part) window.requestAnimationFrame(() => document.getElementById(part)?.scrollIntoView());
        else window.scrollTo(0, 0);
      }}
      {...rest}
    />
  );
}
