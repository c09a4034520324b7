// Markdown as React elements: no HTML is ever parsed, so what an agent wrote can only become text.
import { Fragment } from "react";
import type { ReactNode } from "react";

const LONGEST = 20_000;
const SAFE_LINK = /^(https?:\/\/|mailto:|\/console\/)/i;
// Characters that turn the direction of text or hide in it are shown by their code.
const HIDDEN = /[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2060\ufeff\u0000-\u0008\u000b-\u001f]/g;

export function visible(text: string): string {
  return text.replace(HIDDEN, (char) => `⟨U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

const INLINE = /(`+)([^`](?:.*?[^`])?)\1(?!`)|\*\*([^*\n]+)\*\*|__([^_\n]+)__|\*([^*\s][^*\n]*)\*|\[([^\]\n]*)\]\(([^)\s]+)\)/;

const LONGEST_LINE = 5_000;

function inline(text: string): ReactNode[] {
  if (text.length > LONGEST_LINE) return [text];
  const parts: ReactNode[] = [];
  let rest = text;
  for (let match = INLINE.exec(rest); match; match = INLINE.exec(rest)) {
    if (match.index > 0) parts.push(rest.slice(0, match.index));
    const [whole, , code, bold, heavy, italic, label, target] = match;
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (bold ?? heavy) parts.push(<strong>{bold ?? heavy}</strong>);
    else if (italic) parts.push(<em>{italic}</em>);
    else if (target && SAFE_LINK.test(target))
      parts.push(
        <a href={target} target="_blank" rel="noopener noreferrer">
          {label || target}
        </a>,
      );
    else parts.push(`${label ?? ""} (${target ?? ""})`);
    rest = rest.slice(match.index + whole.length);
  }
  if (rest) parts.push(rest);
  return parts.map((part, index) => <Fragment key={index}>{part}</Fragment>);
}

type Block =
  | { kind: "heading"; level: number; text: string }
  | { kind: "code"; text: string }
  | { kind: "quote"; text: string }
  | { kind: "rule" }
  | { kind: "list"; ordered: boolean; items: string[] }
  | { kind: "table"; rows: string[][] }
  | { kind: "paragraph"; text: string };

function blocks(source: string): Block[] {
  const found: Block[] = [];
  const lines = source.split("\n");
  const cells = (line: string) =>
    line
      .trim()
      .replace(/^\||\|$/g, "")
      .split("|")
      .map((cell) => cell.trim());
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    const fence = /^\s*(```+|~~~+)/.exec(line)?.[1];
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    const item = /^\s*(?:([-*+])|\d+[.)])\s+(.*)$/.exec(line);
    if (fence) {
      const body: string[] = [];
      for (index += 1; index < lines.length && !lines[index]?.trim().startsWith(fence); index += 1) body.push(lines[index] ?? "");
      found.push({ kind: "code", text: body.join("\n") });
    } else if (heading) found.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
    else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) found.push({ kind: "rule" });
    else if (line.trimStart().startsWith(">")) {
      const text = line.replace(/^\s*>\s?/, "");
      const last = found.at(-1);
      if (last?.kind === "quote") last.text += `\n${text}`;
      else found.push({ kind: "quote", text });
    } else if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)+\|?\s*$/.test(lines[index + 1] ?? "")) {
      const rows = [cells(line)];
      for (index += 2; index < lines.length && (lines[index] ?? "").includes("|"); index += 1) rows.push(cells(lines[index] ?? ""));
      index -= 1;
      found.push({ kind: "table", rows });
    } else if (item) {
      const ordered = item[1] === undefined;
      const last = found.at(-1);
      if (last?.kind === "list" && last.ordered === ordered) last.items.push(item[2] ?? "");
      else found.push({ kind: "list", ordered, items: [item[2] ?? ""] });
    } else if (line.trim()) {
      const last = found.at(-1);
      const before = lines[index - 1] ?? "";
      if (last?.kind === "paragraph" && before.trim()) last.text += `\n${line}`;
      else if (last?.kind === "list" && before.trim() && /^\s{2,}/.test(line)) last.items[last.items.length - 1] += ` ${line.trim()}`;
      else found.push({ kind: "paragraph", text: line });
    }
  }
  return found;
}

function drawn(block: Block, key: number): ReactNode {
  switch (block.kind) {
    case "heading": {
      const Tag = block.level <= 2 ? "h4" : "h5";
      return <Tag key={key}>{inline(block.text)}</Tag>;
    }
    case "code":
      return (
        <pre key={key} tabIndex={0}>
          <code>{block.text}</code>
        </pre>
      );
    case "quote":
      return <blockquote key={key}>{inline(block.text)}</blockquote>;
    case "rule":
      return <hr key={key} />;
    case "list": {
      const Tag = block.ordered ? "ol" : "ul";
      return (
        <Tag key={key}>
          {block.items.map((item, index) => (
            <li key={index}>{inline(item)}</li>
          ))}
        </Tag>
      );
    }
    case "table":
      return (
        <div className="scroll" key={key} tabIndex={0} role="region" aria-label="Table">
          <table>
            <thead>
              <tr>
                {block.rows[0]?.map((cell, index) => <th key={index}>{inline(cell)}</th>)}
              </tr>
            </thead>
            <tbody>
              {block.rows.slice(1).map((row, at) => (
                <tr key={at}>
                  {row.map((cell, index) => (
                    <td key={index}>{inline(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "paragraph":
      return <p key={key}>{inline(block.text)}</p>;
  }
}

export function Markdown({ text }: { text: string }) {
  const shown = visible(text.length > LONGEST ? text.slice(0, LONGEST) : text);
  return (
    <div className="markdown">
      {blocks(shown).map(drawn)}
      {text.length > LONGEST && <p className="quiet">… {text.length - LONGEST} more characters; export the session to read them.</p>}
    </div>
  );
}
