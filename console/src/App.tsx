import { useContext, useEffect, useRef, useState } from "react";
import { LiveContext, useLiveChanges, useAskedAgain, usePage } from "./api";
import { HeldAnswers } from "./held";
import { Palette } from "./Palette";
import { useNotifications } from "./notifications";
import { SignIn } from "./SignIn";
import { Link, RouteContext, go, useRoute, useRouter } from "./router";
import type { InboxPage } from "./types";
import { Icon } from "./ui";
import type { IconName } from "./ui";
import { Builtins } from "./views/Builtins";
import { Compare } from "./views/Compare";
import { Health, Settings } from "./views/Health";
import { Inbox, isTyping } from "./views/Inbox";
import { Runs } from "./views/Runs";
import { Search } from "./views/Search";
import { Session } from "./views/Session";
import { Simulation } from "./views/Simulation";
import { Trust } from "./views/Trust";
import { Workflow, Workflows } from "./views/Workflows";

const NAV: [string, string, IconName, string][] = [
  ["inbox", "Inbox", "inbox", "i"],
  ["runs", "Runs", "runs", "r"],
  ["workflows", "Workflows", "workflows", "w"],
  ["search", "Search", "search", "s"],
  ["compare", "Compare", "compare", "c"],
  ["health", "Health", "health", "h"],
];

const COUNT_AGAIN_MS = 2000;

type Theme = "system" | "light" | "dark";
const THEMES: Theme[] = ["system", "light", "dark"];
const THEME = "interlock-theme";

function storedTheme(): Theme {
  const stored = window.localStorage.getItem(THEME);
  return THEMES.find((theme) => theme === stored) ?? "system";
}

export function App() {
  const route = useRouter();
  const live = useLiveChanges();
  return (
    <RouteContext.Provider value={route}>
      <LiveContext.Provider value={live}>
        <Shell />
      </LiveContext.Provider>
    </RouteContext.Provider>
  );
}

function Shell() {
  const route = useRoute();
  const live = useContext(LiveContext).state;
  const [theme, setTheme] = useState(storedTheme);
  const [open, setOpen] = useState<"palette" | "keys" | null>(null);
  const inbox = usePage<InboxPage>("inbox", { order: "newest", limit: "20" });
  const waiting = inbox.data?.total ?? 0;
  useAskedAgain(inbox.reload);
  useEffect(() => {
    if (!inbox.data?.counting) return;
    const timer = window.setTimeout(inbox.reload, COUNT_AGAIN_MS);
    return () => window.clearTimeout(timer);
  }, [inbox.data]);
  useNotifications(inbox.data);
  const room = route.path[0] ?? (waiting > 0 || inbox.data === null ? "inbox" : "runs");

  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    window.localStorage.setItem(THEME, theme);
  }, [theme]);

  useEffect(() => {
    if (!inbox.data) return;
    document.title = `${waiting ? `(${waiting.toLocaleString("en")}${inbox.data.counting ? "+" : ""}) ` : ""}Interlock`;
    const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    if (icon) icon.href = waiting ? `/console/icon-${Math.min(waiting, 99)}.svg` : "/console/icon.svg";
  }, [waiting, inbox.data]);

  useEffect(() => {
    let isGoing = false;
    const pressed = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setOpen((now) => (now === "palette" ? null : "palette"));
        return;
      }
      if (isTyping(event)) return;
      const target = NAV.find(([, , , key]) => key === event.key);
      if (isGoing && target) go(`/console/${target[0]}`);
      else if (event.key === "?") setOpen("keys");
      else if (event.key === "/") {
        event.preventDefault();
        go("/console/search");
      }
      isGoing = event.key === "g";
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);

  return (
    <div className="shell">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header className="bar">
        <Link to="/console/" className="brand" aria-label="Interlock, home">
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="7" />
            <path d="M9 8v16M9 16h8a6 6 0 0 0 6-6V8M23 24v-4" />
          </svg>
          <span>Interlock</span>
        </Link>
        <nav aria-label="Pages">
          {NAV.map(([path, label, icon]) => (
            <Link key={path} to={`/console/${path}`} aria-current={room === path || (path === "runs" && room === "sessions") || (path === "workflows" && room === "builtins") || (path === "health" && room === "settings") ? "page" : undefined}>
              <Icon name={icon} />
              <span>{label}</span>
              {path === "inbox" && waiting > 0 && (
                <span className="count">
                  {waiting > 999 ? `${(waiting / 1000).toFixed(waiting > 9999 ? 0 : 1)}k` : waiting}
                  <span className="sr-only"> waiting</span>
                </span>
              )}
            </Link>
          ))}
        </nav>
        <div className="tools">
          <span className={`live ${live}`} role="status">
            {live}
          </span>
          <button type="button" className="icon-button" aria-label="Command palette" title="Command palette (Ctrl K)" onClick={() => setOpen("palette")}>
            <Icon name="search" />
          </button>
          <button type="button" className="icon-button" aria-label="Keyboard keys" title="Keys (?)" onClick={() => setOpen("keys")}>
            <Icon name="keys" />
          </button>
          <button
            type="button"
            className="icon-button"
            aria-label={`Theme: ${theme}`}
            title={`Theme: ${theme}`}
            onClick={() => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system")}
          >
            <Icon name={theme === "dark" ? "moon" : "sun"} />
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {inbox.error?.code === "UNAUTHORIZED" ? <SignIn /> : <View room={room} rest={route.path.slice(1)} />}
      </main>
      <HeldAnswers />
      {open === "palette" && <Palette pages={NAV.map(([path, label]) => [path, label])} onClose={() => setOpen((now) => (now === "palette" ? null : now))} onKeys={() => setOpen("keys")} setTheme={setTheme} />}
      {open === "keys" && <Keys onClose={() => setOpen(null)} />}
    </div>
  );
}

function View({ room, rest }: { room: string; rest: string[] }) {
  const [id, part] = rest;
  if (room === "inbox") return <Inbox />;
  if (room === "runs") return <Runs />;
  if (room === "sessions" && id) return <Session key={id} reference={id} />;
  if (room === "workflows" && id && part === "simulate") return <Simulation key={id} id={id} />;
  if (room === "workflows" && id && part === "checks") return <Trust key={id} id={id} />;
  if (room === "builtins") return <Builtins />;
  if (room === "workflows") return id ? <Workflow key={id} id={id} /> : <Workflows />;
  if (room === "search") return <Search />;
  if (room === "compare") return <Compare />;
  if (room === "health") return <Health />;
  if (room === "settings") return <Settings />;
  return (
    <header className="page-head">
      <h1>There is no such page</h1>
      <p>
        <Link to="/console/inbox">Go to the inbox</Link> or <Link to="/console/runs">to the runs</Link>.
      </p>
    </header>
  );
}

const KEYS: [string, string][] = [
  ["1 … 9", "Choose an answer in the inbox"],
  ["Enter", "Answer what was chosen; it is sent after five seconds, or when you leave the page"],
  ["n", "Write a note to the answer"],
  ["u", "Undo the last answer that was not sent yet"],
  ["j, k", "Next and previous question, session or step"],
  ["x", "Select the session in the list of runs"],
  ["[, ]", "Previous and next tab of a session"],
  ["g then i, r, w, s, c, h", "Go to inbox, runs, workflows, search, compare, health"],
  ["/", "Search"],
  ["Ctrl K", "Command palette: every page and every action of the view"],
  ["?", "This list"],
  ["Esc", "Close, or think again"],
];

function Keys({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className="keys" aria-labelledby="keys-title" onClose={onClose} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <h2 id="keys-title">Keys</h2>
      <dl>
        {KEYS.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <button type="button" className="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  );
}
