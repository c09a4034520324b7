// Artifacts as the server read them by their contracts; what no contract names is shown as JSON.
import type { ReactNode } from "react";
import { usePage } from "./api";
import { Markdown, visible } from "./markdown";
import { Link, useRoute, withQuery } from "./router";
import type {
  BranchArtifacts,
  ChangedFile,
  LoggedRevision,
  ReviewComment,
  ReviewFinding,
  ReviewHeader,
  Revision,
  RuleChange,
  ShownArtifact,
  VerifiedCheck,
} from "./types";
import { CopyButton, Empty, ErrorBox, Json, Skeleton, Text, Time } from "./ui";

type Tone = ShownArtifact["tone"];
const BADGE: Record<Tone, string> = { good: "complete", bad: "blocked", warning: "gaps", neutral: "quiet" };

function Badge({ tone, children }: { tone: Tone; children: string }) {
  return (
    <span className={`badge ${BADGE[tone]}`}>
      <Text>{children}</Text>
    </span>
  );
}

/** Where a row of a branch's table came from: the step that handed it in, with a link to it. */
function From({ revision }: { revision: Revision | null }) {
  const route = useRoute();
  if (!revision) return null;
  return (
    <span className="revision quiet">
      revision {revision.number}, <Link to={withQuery(route, { tab: null, at: String(revision.node) })}>{visible(revision.step)}</Link>, <Time at={revision.at} />
    </span>
  );
}

function More({ more }: { more: Record<string, unknown> }) {
  return Object.keys(more).length > 0 ? <Json value={more} /> : null;
}

function Place({ file, line }: { file: string; line: number | null }) {
  if (!file) return null;
  return (
    <code>
      <Text>{line === null ? file : `${file}:${line}`}</Text>
    </code>
  );
}

function Table<Row>({ label, columns, rows }: { label: string; columns: [string, (row: Row) => ReactNode][]; rows: Row[] }) {
  return (
    <div className="scroll stacked" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {columns.map(([name]) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map(([name, cell]) => (
                <td key={name} data-label={name}>
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Revised {
  revision: Revision | null;
}

/** The columns that some row has something for, and the revision where the rows have one. */
function present<Row extends Revised>(rows: Row[], columns: [string, (row: Row) => ReactNode][]): [string, (row: Row) => ReactNode][] {
  const shown = columns.filter(([, cell]) => rows.some((row) => cell(row) !== null));
  return rows.some((row) => row.revision) ? [...shown, ["From", (row) => <From revision={row.revision} />]] : shown;
}

const words = (text: string) => (text ? <Text>{text}</Text> : null);

function Files({ files }: { files: ChangedFile[] }) {
  const columns = present<ChangedFile>(files, [
    ["File", (file) => <code className="path"><Text>{file.path}</Text></code>],
    ["Change", (file) => words(file.change)],
    ["Lines", (file) => (file.additions === null && file.deletions === null ? null : `+${file.additions ?? 0} −${file.deletions ?? 0}`)],
    ["Summary", (file) => words(file.summary)],
    ["Risk", (file) => words(file.risk)],
    ["More", (file) => (Object.keys(file.more).length > 0 ? <Json value={file.more} /> : null)],
  ]);
  return <Table label="Changed files" columns={columns} rows={files} />;
}

function Checks({ checks }: { checks: VerifiedCheck[] }) {
  const columns = present<VerifiedCheck>(checks, [
    ["Check", (check) => <Text>{check.name}</Text>],
    ["Result", (check) => (check.result ? <Badge tone={check.tone}>{check.result}</Badge> : null)],
    ["Evidence", (check) => words(check.evidence)],
    ["More", (check) => (Object.keys(check.more).length > 0 ? <Json value={check.more} /> : null)],
  ]);
  return <Table label="Checks" columns={columns} rows={checks} />;
}

function Findings({ findings }: { findings: ReviewFinding[] }) {
  return (
    <ul className="findings" aria-label="Findings">
      {findings.map((finding, index) => (
        <li key={index}>
          <Badge tone={finding.tone}>{finding.severity || "finding"}</Badge>
          <strong>
            <Text>{finding.title}</Text>
          </strong>
          <Place file={finding.file} line={finding.line} />
          {finding.id && <code className="quiet">{visible(finding.id)}</code>}
          <From revision={finding.revision} />
          {finding.rationale && <Markdown text={finding.rationale} />}
          {finding.suggestion && <Markdown text={finding.suggestion} />}
          <More more={finding.more} />
        </li>
      ))}
    </ul>
  );
}

function Comments({ comments }: { comments: ReviewComment[] }) {
  return (
    <ul className="findings" aria-label="Comments to paste">
      {comments.map((comment, index) => (
        <li key={index}>
          <strong>
            <Text>{comment.title || "Comment"}</Text>
          </strong>
          <Place file={comment.file} line={comment.line} />
          <From revision={comment.revision} />
          <CopyButton text={comment.body} label="Copy comment">
            Copy comment
          </CopyButton>
          <Markdown text={comment.body} />
          <More more={comment.more} />
        </li>
      ))}
    </ul>
  );
}

function Rules({ rules }: { rules: RuleChange[] }) {
  return (
    <ul className="findings" aria-label="Working agreement">
      {rules.map((rule, index) => (
        <li key={index}>
          <Badge tone={rule.op === "remove" ? "bad" : rule.op === "replace" ? "warning" : "good"}>{rule.op || "rule"}</Badge>
          <strong>
            <Text>{rule.rule}</Text>
          </strong>
          {rule.replaces && (
            <span className="quiet">
              replaces “<Text>{rule.replaces}</Text>”
            </span>
          )}
          <From revision={rule.revision} />
          {rule.reason && (
            <p className="quiet">
              <Text>{rule.reason}</Text>
            </p>
          )}
          <More more={rule.more} />
        </li>
      ))}
    </ul>
  );
}

function Header({ header }: { header: ReviewHeader }) {
  return (
    <div className="review-header">
      {header.title && (
        <strong>
          <Text>{header.title}</Text>
        </strong>
      )}
      {header.classification && <Badge tone="neutral">{header.classification}</Badge>}
      <From revision={header.revision} />
      {header.focusAreas.length > 0 && (
        <ul aria-label="Focus areas" className="chips">
          {header.focusAreas.map((area, index) => (
            <li key={index}>
              <Text>{area}</Text>
            </li>
          ))}
        </ul>
      )}
      <More more={header.more} />
    </div>
  );
}

function Log({ log }: { log: LoggedRevision[] }) {
  return (
    <ol className="findings" aria-label="Revision log">
      {log.map((entry, index) => (
        <li key={index}>
          <span>
            <Text>{entry.text}</Text>
          </span>
          <From revision={entry.revision} />
        </li>
      ))}
    </ol>
  );
}

type Parts = Pick<ShownArtifact, "header" | "log" | "files" | "findings" | "comments" | "checks" | "rules">;

/** The parts of an artifact, or of a whole branch, that have something in them. */
function parts(of: Parts): [string, ReactNode][] {
  const all: [string, ReactNode, number][] = [
    ["Review", of.header && <Header header={of.header} />, of.header ? 1 : 0],
    ["Changed files", <Files files={of.files} />, of.files.length],
    ["Findings", <Findings findings={of.findings} />, of.findings.length],
    ["Comments to paste", <Comments comments={of.comments} />, of.comments.length],
    ["Checks", <Checks checks={of.checks} />, of.checks.length],
    ["Working agreement", <Rules rules={of.rules} />, of.rules.length],
    ["Revision log", <Log log={of.log} />, of.log.length],
  ];
  return all.filter(([, , count]) => count > 0).map(([name, part]) => [name, part]);
}

export function Artifact({ artifact }: { artifact: ShownArtifact }) {
  return (
    <figure className="artifact">
      <figcaption>
        {artifact.title && <span>{visible(artifact.title)} </span>}
        <code>
          <Text>{artifact.kind.slice(0, 200) || "artifact"}</Text>
        </code>
      </figcaption>
      {(artifact.headline || artifact.facts.length > 0) && (
        <div>
          {artifact.headline && (
            <p>
              <Badge tone={artifact.tone}>{artifact.headline}</Badge>
            </p>
          )}
          <dl className="artifact-facts">
            {artifact.facts.map((fact, index) => (
              <div key={index}>
                <dt>
                  <Text>{fact.name}</Text>
                </dt>
                <dd>
                  <Text>{fact.text}</Text>
                </dd>
              </div>
            ))}
          </dl>
        </div>
      )}
      {parts(artifact).map(([name, part]) => (
        <div key={name}>{part}</div>
      ))}
      <More more={artifact.rest} />
    </figure>
  );
}

/** What the artifacts along the shown branch come to, each row with the revision that it came from. */
export function Artifacts({ reference, sessionId, run, node }: { reference: string; sessionId: string; run: string; node: string | undefined }) {
  const { data, error } = usePage<BranchArtifacts>(`sessions/${reference}/artifacts`, { run, node }, sessionId);
  if (error) return <ErrorBox error={error} />;
  if (!data) return <Skeleton />;
  const sections = parts(data);
  return (
    <div className="branch-artifacts">
      {data.omitted > 0 && <p className="quiet">{data.omitted} earlier nodes are not counted; export the session to read them.</p>}
      {sections.length === 0 && (
        <Empty title={data.artifacts > 0 ? "No tables" : "No artifacts yet"}>
          <p>
            {data.artifacts > 0
              ? "The artifacts of this branch have kinds without tables; the story shows each of them."
              : "What steps of this branch hand in by a contract is brought together here."}
          </p>
        </Empty>
      )}
      {sections.map(([name, part]) => (
        <section key={name} aria-label={name}>
          <h2>{name}</h2>
          {part}
        </section>
      ))}
    </div>
  );
}
