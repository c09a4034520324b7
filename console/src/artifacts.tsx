// Artifacts by their kind. Only fields of a known contract are given a meaning; anything else is shown as JSON.
import { CopyButton, Json, Text } from "./ui";
import { Markdown } from "./markdown";

type Fields = Record<string, unknown>;
const list = (value: unknown): Fields[] =>
  Array.isArray(value) ? value.filter((each): each is Fields => typeof each === "object" && each !== null) : [];
const text = (value: unknown): string =>
  typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
const RESULT: Record<string, string> = { pass: "complete", fail: "blocked", skipped: "quiet", partial: "gaps", unknown: "quiet" };
const SEVERITY = ["critical", "major", "minor", "nit", "info"];

function location(value: unknown): string {
  if (typeof value === "string") return value;
  const { file, line } = (value ?? {}) as Fields;
  return [text(file), text(line)].filter(Boolean).join(":");
}

function Table({ label, head, rows }: { label: string; head: string[]; rows: string[][] }) {
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {head.map((cell) => (
              <th key={cell} scope="col">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, index) => (
                <td key={index}>{index === 0 ? <code><Text>{cell}</Text></code> : <Text>{cell}</Text>}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function changedFiles(rows: Fields[]) {
  const byPath = new Map(rows.map((row) => [text(row.path), row]));
  const sorted = [...byPath.entries()].sort(([one], [other]) => one.localeCompare(other));
  return <Table label="Changed files" head={["File", "Summary", "Risk"]} rows={sorted.map(([path, row]) => [path, text(row.summary), text(row.risk)])} />;
}

function findings(rows: Fields[]) {
  const rank = (row: Fields) => (SEVERITY.indexOf(text(row.severity).toLowerCase()) + SEVERITY.length + 1) % (SEVERITY.length + 1);
  return (
    <ul className="findings">
      {[...rows]
        .sort((one, other) => rank(one) - rank(other))
        .map((row, index) => (
          <li key={index}>
            <span className={`badge ${["critical", "major"].includes(text(row.severity).toLowerCase()) ? "blocked" : "gaps"}`}>
              <Text>{text(row.severity) || "finding"}</Text>
            </span>
            <strong>
              <Text>{text(row.title ?? row.summary)}</Text>
            </strong>
            {location(row.location) && <code><Text>{location(row.location)}</Text></code>}
            {text(row.rationale) && <Markdown text={text(row.rationale)} />}
            {text(row.suggestion) && <Markdown text={text(row.suggestion)} />}
          </li>
        ))}
    </ul>
  );
}

function comments(rows: Fields[]) {
  return (
    <ul className="findings">
      {rows.map((row, index) => (
        <li key={index}>
          <strong>
            <Text>{text(row.title)}</Text>
          </strong>
          {location(row.location) && <code><Text>{location(row.location)}</Text></code>}
          <Markdown text={text(row.body)} />
          <CopyButton text={text(row.body)} label="Copy comment">
            Copy comment
          </CopyButton>
        </li>
      ))}
    </ul>
  );
}

function checks(artifact: Fields) {
  return (
    <>
      <p>
        <span className={`badge ${RESULT[text(artifact.verdict)] ?? "quiet"}`}>
          <Text>{text(artifact.verdict)}</Text>
        </span>
      </p>
      <Table
        label="Checks"
        head={["Check", "Result", "Evidence"]}
        rows={list(artifact.checks).map((check) => [text(check.name), text(check.result), text(check.evidence)])}
      />
    </>
  );
}

const KNOWN = new Set(["kind", "changedFiles", "findings", "mrComments", "checks", "verdict"]);

export function Artifact({ artifact }: { artifact: Fields }) {
  const kind = text(artifact.kind) || "artifact";
  const parts = [
    artifact.changedFiles ? changedFiles(list(artifact.changedFiles)) : null,
    artifact.findings ? findings(list(artifact.findings)) : null,
    artifact.mrComments ? comments(list(artifact.mrComments)) : null,
    kind === "wr.verification_report" && artifact.checks ? checks(artifact) : null,
  ].filter(Boolean);
  const rest = Object.fromEntries(Object.entries(artifact).filter(([name]) => name !== "kind" && (parts.length === 0 || !KNOWN.has(name))));
  return (
    <figure className="artifact">
      <figcaption>
        <code>
          <Text>{kind.slice(0, 200)}</Text>
        </code>
      </figcaption>
      {parts.map((part, index) => (
        <div key={index}>{part}</div>
      ))}
      {Object.keys(rest).length > 0 && <Json value={rest} />}
    </figure>
  );
}
