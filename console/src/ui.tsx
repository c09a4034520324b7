// The small parts that every view is made of.
import { useEffect, useRef, useState } from "react";
import type { ReactNode } from "react";
import type { ConsoleError } from "./types";
import { visible } from "./markdown";

const PATHS = {
  inbox: "M3 12h4l2 3h6l2-3h4M5 5h14l2 7v6a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1v-6z",
  runs: "M4 6h16M4 12h16M4 18h10",
  workflows: "M5 4h6v5H5zM13 15h6v5h-6zM8 9v4a2 2 0 0 0 2 2h3",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l5 5",
  health: "M3 12h4l3-7 4 14 3-7h4",
  compare: "M8 4v16M16 4v16M4 8h4M16 12h4",
  sun: "M12 4V2M12 22v-2M4 12H2M22 12h-2M6 6 5 5M19 19l-1-1M6 18l-1 1M19 5l-1 1M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8z",
  moon: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z",
  check: "M5 13l4 4L19 7",
  copy: "M8 8h11v12H8zM5 16V4h11",
  fork: "M7 4v16M7 12h6a4 4 0 0 0 4-4V4",
  keys: "M3 7h18v10H3zM7 11h.01M11 11h.01M15 11h.01M8 14h8",
} as const;
export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

const UNITS: [number, Intl.RelativeTimeFormatUnit][] = [
  [60_000, "second"],
  [3_600_000, "minute"],
  [86_400_000, "hour"],
  [86_400_000 * 14, "day"],
  [86_400_000 * 60, "week"],
  [86_400_000 * 730, "month"],
  [Number.POSITIVE_INFINITY, "year"],
];
const SIZES: Record<string, number> = { second: 1000, minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 604_800_000, month: 2_629_800_000, year: 31_557_600_000 };
const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" });

function ago(at: number, now: number): string {
  const past = now - at;
  if (past < 10_000) return "just now";
  const unit = UNITS.find(([limit]) => past < limit)?.[1] ?? "year";
  return RELATIVE.format(-Math.floor(past / (SIZES[unit] ?? 1000)), unit);
}

export function Time({ at }: { at: number }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = window.setInterval(() => setNow(Date.now()), 20_000);
    return () => window.clearInterval(timer);
  }, []);
  const when = new Date(at);
  return (
    <time dateTime={when.toISOString()} title={when.toLocaleString()}>
      {ago(at, now)}
    </time>
  );
}

/** A time as a clock shows it, with the day if it is another. */
export function Clock({ at }: { at: number }) {
  const when = new Date(at);
  const isToday = when.toDateString() === new Date().toDateString();
  return <time dateTime={when.toISOString()}>{isToday ? when.toLocaleTimeString() : when.toLocaleString()}</time>;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${ms} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const [size, unit, part, partUnit] = seconds < 3600 ? [60, "min", 1, "s"] : seconds < 86_400 ? [3600, "h", 60, "min"] : [86_400, "d", 3600, "h"];
  const rest = Math.floor((seconds % size) / part);
  return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${partUnit}` : ""}`;
}

const STATUS: Record<string, [string, string]> = {
  in_progress: ["Running", "running"],
  waiting: ["Waiting for you", "waiting"],
  blocked: ["Blocked", "blocked"],
  stale: ["Stale", "quiet"],
  abandoned: ["Abandoned", "quiet"],
  complete: ["Complete", "complete"],
  complete_with_gaps: ["Complete with gaps", "gaps"],
  damaged: ["Damaged", "blocked"],
  "no run": ["No run", "quiet"],
};

export const statusLabel = (status: string): string => STATUS[status]?.[0] ?? status.replaceAll("_", " ");

export function StatusBadge({ status }: { status: string }) {
  const [label, look] = STATUS[status] ?? [status.replaceAll("_", " "), "quiet"];
  return <span className={`badge ${look}`}>{label}</span>;
}

export function ErrorBox({ error }: { error: ConsoleError }) {
  return (
    <div className="error" role="alert">
      <strong>{error.message}</strong>
      <p>
        {error.nextAction.split("`").map((text, index) => (index % 2 ? <code key={index}>{text}</code> : text))} <code>({error.code})</code>
      </p>
    </div>
  );
}

/** A dialog that is open while it is rendered; Escape and a click beside it close it. */
export function Dialog({ title, className, onClose, children }: { title: string; className?: string; onClose: () => void; children: ReactNode }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} className={className} aria-label={title} onClose={onClose} onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

export function Empty({ title, children, command }: { title: string; children?: ReactNode; command?: string }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
      {command && <Command text={command} />}
    </div>
  );
}

export function Command({ text }: { text: string }) {
  return (
    <div className="command">
      <code>{text}</code>
      <CopyButton text={text} label="Copy command" />
    </div>
  );
}

export function CopyButton({ text, label, children }: { text: string | (() => string); label: string; children?: ReactNode }) {
  const [copied, setCopied] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => window.clearTimeout(timer.current), []);
  return (
    <button
      type="button"
      className={children ? "button small" : "icon-button"}
      aria-label={children ? undefined : label}
      title={label}
      onClick={() => {
        void navigator.clipboard.writeText(typeof text === "string" ? text : text()).then(() => {
          setCopied(true);
          timer.current = window.setTimeout(() => setCopied(false), 1500);
        });
      }}
    >
      <Icon name={copied ? "check" : "copy"} />
      {children}
      <span className="sr-only" aria-live="polite">
        {copied ? "Copied" : ""}
      </span>
    </button>
  );
}

export function Skeleton({ rows = 6 }: { rows?: number }) {
  return (
    <div className="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} />
      ))}
    </div>
  );
}

const LONGEST_JSON = 20_000;

export function Json({ value }: { value: unknown }) {
  const text = visible(JSON.stringify(value, null, 2) ?? "");
  return (
    <pre className="json" tabIndex={0}>
      {text.slice(0, LONGEST_JSON)}
      {text.length > LONGEST_JSON && `\n… ${text.length - LONGEST_JSON} more characters`}
    </pre>
  );
}

export function Text({ children }: { children: string }) {
  return <>{visible(children)}</>;
}
