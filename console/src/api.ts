// Requests to the server that sent this page; nothing else is ever asked.
import { createContext, useCallback, useContext, useEffect, useRef, useState } from "react";
import type { ConsoleError } from "./types";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly error: ConsoleError,
  ) {
    super(error.message);
  }
}

const UNREACHABLE: ConsoleError = {
  code: "UNREACHABLE",
  message: "The server does not answer.",
  nextAction: "Start it again with `interlock console`; this page continues by itself.",
};

async function answered<T>(request: Promise<Response>): Promise<T> {
  let response: Response;
  try {
    response = await request;
  } catch {
    throw new Refused(0, UNREACHABLE);
  }
  const body: unknown = await response.json().catch(() => null);
  if (response.ok) return body as T;
  const error = (body as { error?: Partial<ConsoleError> } | null)?.error;
  throw new Refused(response.status, {
    code: error?.code ?? `HTTP_${response.status}`,
    message: error?.message ?? "The server refused this request.",
    nextAction: error?.nextAction ?? "Reload the page.",
  });
}

export function address(path: string, query: Record<string, string | undefined> = {}): string {
  const pairs = Object.entries(query).filter((pair): pair is [string, string] => Boolean(pair[1]));
  const search = new URLSearchParams(pairs).toString();
  return `/console/${path}${search ? `?${search}` : ""}`;
}

export function get<T>(path: string, query: Record<string, string | undefined> = {}): Promise<T> {
  return answered<T>(fetch(address(`${path}.json`, query), { headers: { Accept: "application/json" } }));
}

let csrf: Promise<string> | null = null;

let token = "";

/** Get ready to send something at once, even while the page is being left. */
export function prepareToAct(): void {
  void csrfToken().catch(() => undefined);
}

async function csrfToken(): Promise<string> {
  csrf ??= get<{ csrf: string }>("csrf").then((answer) => answer.csrf);
  try {
    token = await csrf;
  } catch (error) {
    csrf = null;
    throw error;
  }
  return token;
}

function posted(name: string, body: unknown, keepalive = false): Promise<Response> {
  return fetch(`/console/do/${name}`, {
    method: "POST",
    keepalive,
    headers: { "Content-Type": "application/json", "X-Interlock-Csrf": token },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

export async function act<T>(name: string, body: unknown): Promise<T> {
  await csrfToken();
  return answered<T>(posted(name, body));
}

/** Send an action while the page is being left: nobody is there to hear the answer. */
export function actOnLeaving(name: string, body: unknown): void {
  void posted(name, body, true).catch(() => undefined);
}

/** Send actions and keep what came of the last one, for a sentence or an error on the page. */
export function useAct(): { send: <T>(name: string, body: unknown, then: (done: T) => string) => Promise<boolean>; message: string; error: ConsoleError | null } {
  const [shown, setShown] = useState<{ message: string; error: ConsoleError | null }>({ message: "", error: null });
  const send = useCallback(
    <T,>(name: string, body: unknown, then: (done: T) => string) =>
      act<T>(name, body).then(
        (done) => {
          setShown({ message: then(done), error: null });
          return true;
        },
        (refused: unknown) => {
          if (!(refused instanceof Refused)) throw refused;
          setShown({ message: "", error: refused.error });
          return false;
        },
      ),
    [],
  );
  return { send, ...shown };
}

export function login(token: string): Promise<unknown> {
  const headers = { "Content-Type": "application/json" };
  return answered(fetch("/console/login", { method: "POST", headers, body: JSON.stringify({ token }) }));
}

export type LiveState = "live" | "reconnecting" | "offline";
export interface Live {
  state: LiveState;
  tick: number;
  moved: ReadonlySet<string>;
  asked: number;
}

const POLL_MS = 5000;

/**
 * Hear of changes. A stream that is cut resumes after the last change that arrived; meanwhile the page looks again
 * every few seconds, and once whenever its tab is shown again. It is offline while not even that is answered.
 */
export function useLiveChanges(): Live {
  const [live, setLive] = useState<Live>({ state: "reconnecting", tick: 0, moved: new Set(), asked: 0 });
  useEffect(() => {
    let source: EventSource | null = null;
    let again = 0;
    let last = "";
    let isOpen = false;
    const to = (state: LiveState) => setLive((now) => (now.state === state ? now : { ...now, state }));
    const look = () => setLive((now) => ({ ...now, tick: now.tick + 1, moved: new Set() }));
    const open = () => {
      source = new EventSource(address("live", { after: last }));
      source.addEventListener("began", (event) => {
        last = event.lastEventId;
        isOpen = true;
        setLive((now) => ({ ...now, state: "live", tick: now.state === "live" ? now.tick : now.tick + 1, moved: new Set() }));
      });
      source.addEventListener("moved", (event) => {
        last = event.lastEventId;
        const { sessions } = JSON.parse(event.data as string) as { sessions: string[] };
        setLive((now) => ({ ...now, state: "live", tick: now.tick + 1, moved: new Set(sessions) }));
      });
      source.addEventListener("asked", () => setLive((now) => ({ ...now, asked: now.asked + 1 })));
      source.onerror = () => {
        isOpen = false;
        setLive((now) => (now.state === "live" ? { ...now, state: "reconnecting" } : now));
        if (source?.readyState === EventSource.CLOSED) again = window.setTimeout(open, POLL_MS);
      };
    };
    const polling = window.setInterval(() => {
      if (isOpen) return;
      void get("csrf").then(
        () => {
          if (isOpen) return;
          to("reconnecting");
          look();
        },
        (error: unknown) => {
          if (isOpen || !(error instanceof Refused)) return;
          to(error.status === 0 ? "offline" : "reconnecting");
          if (error.status === 401) look(); // another launch of the server: the pages ask to sign in again
        },
      );
    }, POLL_MS);
    const seen = () => {
      if (!document.hidden) look();
    };
    document.addEventListener("visibilitychange", seen);
    open();
    return () => {
      source?.close();
      document.removeEventListener("visibilitychange", seen);
      window.clearTimeout(again);
      window.clearInterval(polling);
    };
  }, []);
  return live;
}

export const LiveContext = createContext<Live>({ state: "reconnecting", tick: 0, moved: new Set(), asked: 0 });

/** Look again whenever the stream says that the inbox is not as it was: it follows all sessions, not only the newest. */
export function useAskedAgain(look: () => void): void {
  const { asked } = useContext(LiveContext);
  const seen = useRef(asked);
  useEffect(() => {
    if (seen.current !== asked) look();
    seen.current = asked;
  }, [asked, look]);
}

export interface Page<T> {
  data: T | null;
  error: ConsoleError | null;
  reload: () => void;
}

/** Load a page, keep showing it while it is loaded again, and load it again when something has moved. */
export function usePage<T>(path: string, query: Record<string, string | undefined> = {}, session?: string): Page<T> {
  const key = address(path, query);
  const live = useContext(LiveContext);
  const [loaded, setLoaded] = useState<{ key: string; data: T | null; error: ConsoleError | null }>({
    key,
    data: null,
    error: null,
  });
  const current = useRef(key);
  current.current = key;
  const reload = useCallback(() => {
    get<T>(path, query).then(
      (data) => current.current === key && setLoaded({ key, data, error: null }),
      (error: unknown) => {
        if (current.current !== key || !(error instanceof Refused)) return;
        setLoaded((now) => ({ key, data: now.key === key ? now.data : null, error: error.error }));
      },
    );
    // `key` stands for path and query
  }, [key]);
  useEffect(reload, [reload]);
  const first = useRef(live.tick);
  useEffect(() => {
    if (live.tick === first.current) return;
    first.current = live.tick;
    if (session === undefined || live.moved.size === 0 || live.moved.has(session)) reload();
  }, [live, reload, session]);
  return loaded.key === key ? { ...loaded, reload } : { data: null, error: null, reload };
}
