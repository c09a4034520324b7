import { useEffect, useMemo, useRef, useState } from "react";
import { get } from "./api";
import { offeredCommands } from "./commands";
import { visible } from "./markdown";
import { go } from "./router";
import type { RunsPage, WorkflowsPage } from "./types";

interface Entry {
  label: string;
  hint: string;
  run: () => void;
}

interface PaletteProps {
  pages: [string, string][];
  onClose: () => void;
  setTheme: (theme: "system" | "light" | "dark") => void;
}

/** Reaches every page, workflow and recent session, and the actions that need no page. */
export function Palette({ pages, onClose, setTheme }: PaletteProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [runs, setRuns] = useState<RunsPage | null>(null);
  const [workflows, setWorkflows] = useState<WorkflowsPage | null>(null);
  useEffect(() => {
    dialog.current?.showModal();
    void get<WorkflowsPage>("workflows").then(setWorkflows, () => undefined);
  }, []);
  useEffect(() => {
    const timer = window.setTimeout(() => void get<RunsPage>("runs", { q: text, limit: "8" }).then(setRuns, () => undefined), text ? 150 : 0);
    return () => window.clearTimeout(timer);
  }, [text]);

  const entries = useMemo(() => {
    const to = (path: string) => () => go(`/console/${path}`);
    const fixed: Entry[] = [
      ...offeredCommands(),
      ...pages.map(([path, label]) => ({ label, hint: "page", run: to(path) })),
      { label: "Built in: contracts, templates, features, capabilities, references", hint: "page", run: to("builtins") },
      { label: "Settings", hint: "page", run: to("settings") },
      { label: "Waiting for you", hint: "runs", run: to("runs?status=waiting") },
      { label: "Blocked runs", hint: "runs", run: to("runs?status=blocked") },
      ...(["system", "light", "dark"] as const).map((theme) => ({ label: `Theme: ${theme}`, hint: "action", run: () => setTheme(theme) })),
      ...(workflows?.workflows ?? []).map((each) => ({ label: each.name, hint: each.id, run: to(`workflows/${each.id}`) })),
      ...(workflows?.workflows ?? []).map((each) => ({ label: `Simulate ${each.name}`, hint: each.id, run: to(`workflows/${each.id}/simulate`) })),
    ];
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const matches = fixed.filter((entry) => words.every((word) => `${entry.label} ${entry.hint}`.toLowerCase().includes(word)));
    const sessions = (runs?.lines ?? []).map((line) => ({ label: line.title, hint: `session ${line.ref}`, run: to(`sessions/${line.ref}`) }));
    return [...(text ? matches : matches.slice(0, pages.length + 2)), ...sessions].slice(0, 14);
  }, [pages, runs, workflows, text, setTheme]);

  const choose = (entry: Entry | undefined) => {
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
        placeholder="Go to a page, workflow or session…"
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
