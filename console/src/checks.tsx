// What came of checks, each with its strength: run by the server, or only claimed by the agent.
import { visible } from "./markdown";
import type { ShownCheck } from "./types";
import { Time, duration } from "./ui";

export function Checks({ checks }: { checks: ShownCheck[] }) {
  if (checks.length === 0) return null;
  return (
    <ul className="checks" aria-label="Checks">
      {checks.map((check, index) => (
        <li key={index}>{check.by === "agent" ? <Claimed check={check} /> : <Ran check={check} />}</li>
      ))}
    </ul>
  );
}

function Claimed({ check }: { check: ShownCheck }) {
  return (
    <p>
      <span className="badge gaps">claimed</span> <code>{visible(check.id)}</code> <span>claimed by the agent: the server did not run it</span>
    </p>
  );
}

/** A check that was not run says why; what the agent was told to do about it is not for the reader. */
function Ran({ check }: { check: ShownCheck }) {
  const wasRun = check.trustedBy !== "" && check.outcome !== "not started";
  return (
    <>
      <p>
        <span className={`badge ${check.passed ? "complete" : "blocked"}`}>{check.passed ? "passed" : wasRun || !check.outcome ? "failed" : "not run"}</span> <code>{visible(check.id)}</code>{" "}
        {wasRun || !check.outcome ? <strong>run by the server</strong> : <span>{visible(check.reason.split(". Ask the user")[0] ?? "")}</span>}
        {wasRun && (
          <>
            : <code>{visible(check.command)}</code>, {check.outcome} in {duration(check.durationMs)}, <Time at={check.at} />
          </>
        )}
      </p>
      {wasRun && (
        <p className="quiet">
          {check.folder !== "." && (
            <>
              in <code>{visible(check.folder)}</code>,{" "}
            </>
          )}
          {check.tree ? (
            <>
              on files <code title={check.tree}>{check.tree.slice(7, 15)}</code>
            </>
          ) : (
            "while files changed"
          )}
          {check.head && (
            <>
              , commit <code title={check.head}>{check.head.slice(0, 10)}</code>
            </>
          )}
          , trusted by {visible(check.trustedBy.replace(/^(\w+):(.*)$/, "$2 ($1)"))}
          {check.reason && ` · ${visible(check.reason)}`}
        </p>
      )}
      {check.output && (
        <details open={!check.passed} onToggle={(event) => showEnd(event.currentTarget.querySelector("pre"))}>
          <summary>End of its output</summary>
          <pre className="output" tabIndex={0} ref={showEnd}>
            {visible(check.output)}
          </pre>
        </details>
      )}
    </>
  );
}

function showEnd(output: HTMLPreElement | null): void {
  if (output) output.scrollTop = output.scrollHeight;
}
