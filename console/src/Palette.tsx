import { useEffect, useMemo, useRef, useState } from "react";
import { get } from "./api";
import { offeredCommands } from "./commands";
import type { Command } from "./commands";
import { visible } from "./markdown";
import { go } from "./router";
import type { RunsPage, SearchPage, WorkflowsPage } from "./types";
import { statusLabel } from "./ui";

interface PaletteProps {
  pages: [string, string][];
  onClose: () => void;
  onKeys: () => void;
  setTheme: (theme: "system" | "light" | "dark") => void;
}

const MOST = 40;

/** Reaches every page, workflow and session, and every action of the view that is shown. */
export function Palette({ pages, onClose, onKeys, setTheme }: PaletteProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [found, setFound] = useState<Command[]>([]);
  const [workflows, setWorkflows] = useState<WorkflowsPage | null>(null);
  useEffect(() => {
    dialog.current?.showModal();
    void get<WorkflowsPage>("workflows").then(setWorkflows, () => undefined);
  }, []);
  useEffect(() => {
    const to = (path: string) => () => go(`/console/${path}`);
    const search = async () => {
      if (!text.trim()) {
        const { lines } = await get<RunsPage>("runs", { limit: "8" });
        return lines.map((line) => ({ label: line.title, hint: `session ${line.ref}`, run: to(`sessions/${line.ref}`) }));
      }
      const { hits, workflows } = await get<SearchPage>("search", { q: text });
      const items = workflows.flatMap((each) => each.items.map((item) => ({ label: item.title, hint: `step of ${each.id}`, run: to(`workflows/${each.id}`) })));
      return [...hits.map((hit) => ({ label: hit.title, hint: `session ${hit.ref}`, run: to(`sessions/${hit.ref}`) })), ...items];
    };
    let isCurrent = true;
    const timer = window.setTimeout(() => void search().then((entries) => isCurrent && setFound(entries), () => undefined), text ? 150 : 0);
    return () => {
      isCurrent = false;
      window.clearTimeout(timer);
    };
  }, [text]);

  const entries = useMemo(() => {
    const to = (path: string) => () => go(`/console/${path}`);
    const fixed: Command[] = [
      ...offeredCommands(),
      ...pages.map(([path, label]) => ({ label, hint: "page", run: to(path) })),
      { label: "Built in: contracts, templates, features, capabilities, references", hint: "page", run: to("builtins") },
      { label: "Settings", hint: "page", run: to("settings") },
      ...["waiting", "in_progress", "blocked", "stale"].map((status) => ({ label: `Runs: ${statusLabel(status)}`, hint: "page", run: to(`runs?status=${status}`) })),
      { label: "Keyboard keys", hint: "action", run: onKeys },
      ...(["system", "light", "dark"] as const).map((theme) => ({ label: `Theme: ${theme}`, hint: "action", run: () => setTheme(theme) })),
      ...(workflows?.workflows ?? []).map((each) => ({ label: each.name, hint: each.id, run: to(`workflows/${each.id}`) })),
      ...(workflows?.workflows ?? []).map((each) => ({ label: `Simulate ${each.name}`, hint: each.id, run: to(`workflows/${each.id}/simulate`) })),
    ];
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = fixed.filter((entry) => words.every((word) => `${entry.label} ${entry.hint}`.toLowerCase().includes(word)));
    const distinct = new Map([...matches, ...found].map((entry) => [`${entry.label}\n${entry.hint}`, entry]));
    return [...distinct.values()].slice(0, MOST);
  }, [pages, found, workflows, text, setTheme, onKeys]);
  useEffect(() => {
    document.getElementById(`palette-${at}`)?.scrollIntoView({ block: "nearest" }); // returns a promise in new browsers
  }, [at]);

  const choose = (entry: Command | undefined) => {
    if (!entry) return;
    dialog.current?.close();
    entry.run();
  };
  return (
    <dialog ref={dialog} className="palette" aria-label="Command palette" onClose={onClose} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries[at] ? `palette-${at}` : undefined}
        aria-label="Go to a page, workflow or session"
        placeholder="Do something, or go to a page, workflow or session…"
        autoFocus
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt((now) => Math.min(now + 1, entries.length - 1));
          else if (event.key === "ArrowUp") setAt((now) => Math.max(now - 1, 0));
          else if (event.key === "Enter") choose(entries[at]);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Results">
        {entries.map((entry, index) => (
          <li key={`${entry.hint} ${entry.label} ${index}`} id={`palette-${index}`} role="option" aria-selected={index === at} onMouseEnter={() => setAt(index)} onClick={() => choose(entry)}>
            <span>{visible(entry.label)}</span>
            <span className="quiet">{entry.hint}</span>
          </li>
        ))}
      </ul>
    </dialog>
  );
}
