import { useState } from "react";
import { useAct, usePage } from "../api";
import { visible } from "../markdown";
import { go, Link, useRoute, withQuery } from "../router";
import type { ActionDone, TrustLine, TrustPage, TrustRequest } from "../types";
import { Empty, ErrorBox, Skeleton, Time } from "../ui";

const STATES = {
  trusted: ["Trusted", "complete"],
  changed: ["Changed since it was trusted", "blocked"],
  untrusted: ["Not trusted", "gaps"],
} as const;

/** What the server would run for a workflow, in full, and the buttons by which a person lets it. */
export function Trust({ id }: { id: string }) {
  const route = useRoute();
  const [session, owner] = ["session", "owner"].map((name) => route.query.get(name) ?? undefined);
  const { data, error, reload } = usePage<TrustPage>(`workflows/${encodeURIComponent(id)}/checks`, { session, owner }, "");
  const [pin, setPin] = useState("");
  const { send, message, error: refused } = useAct();
  const change = (line: TrustLine, revoke: boolean) => {
    if (!data) return;
    const { workflow, folder, owner: whose } = data;
    const request: TrustRequest = { workflow, folder, check: line.check, definition: line.definition, sessionId: session ?? "", owner: whose, revoke, pin };
    void send<ActionDone>("trust", request, (done) => done.message).then(reload);
  };
  return (
    <>
      <header className="page-head">
        <p className="crumbs">
          <Link to="/console/workflows">Workflows</Link> / <Link to={`/console/workflows/${encodeURIComponent(id)}`}>{visible(id)}</Link> / checks
        </p>
        <h1>Checks{data && ` of ${visible(data.name)}`}</h1>
        <p>
          Commands that the server runs itself when a step is done. Workflows are files that an agent can write, so it runs a command only if a person has trusted it, exactly as it is shown here. It runs as the
          user of the server, and can do what that user can.
        </p>
        {session && (
          <p className="quiet">
            As session <Link to={`/console/sessions/${session}`}>{visible(session)}</Link> has them: its workflow does not change while it runs.
          </p>
        )}
        {data && (
          <p>
            In the folder <code>{visible(data.folder)}</code>
            {data.owners.length > 0 && (
              <>
                , for the sessions of{" "}
                {data.owners.length > 1 ? (
                  <select aria-label="Whose sessions" value={data.owner} onChange={(event) => go(withQuery(route, { owner: event.target.value }), true)}>
                    {data.owners.map((each) => (
                      <option key={each} value={each}>
                        {visible(each)}
                      </option>
                    ))}
                  </select>
                ) : (
                  visible(data.owner)
                )}
              </>
            )}
          </p>
        )}
      </header>
      {error && <ErrorBox error={error} />}
      {!data && !error && <Skeleton rows={4} />}
      {data && !data.canDecide && <p className="notice">You may read this. An agent may hold a token of your role, so a principal of the role approver trusts checks.</p>}
      {data?.canDecide && data.needsPin && data.checks.length > 0 && (
        <label className="field pin">
          PIN
          <input type="password" inputMode="numeric" value={pin} onChange={(event) => setPin(event.target.value)} autoComplete="off" />
        </label>
      )}
      <p role="status">{visible(message)}</p>
      {refused && <ErrorBox error={refused} />}
      {data?.checks.map((line) => (
        <TrustCard key={line.check} line={line} canDecide={data.canDecide} onChange={(revoke) => change(line, revoke)} />
      ))}
      {data && data.checks.length === 0 && (
        <Empty title="The server runs no checks for this workflow">
          <p>Where its steps ask for tests, the result is what the agent claims.</p>
        </Empty>
      )}
      {data && data.claimed.length > 0 && (
        <p className="notice">
          Not defined by this project, so only claimed by the agent: <strong>{visible(data.claimed.join(", "))}</strong>. <code>interlock init --checks</code> proposes commands for them.
        </p>
      )}
    </>
  );
}

function TrustCard({ line, canDecide, onChange }: { line: TrustLine; canDecide: boolean; onChange: (revoke: boolean) => void }) {
  const [state, look] = STATES[line.state];
  const { trusted } = line;
  return (
    <article className="trust-card" aria-label={`Check ${line.check}`}>
      <h2>
        <code>{visible(line.check)}</code> <span className={`badge ${look}`}>{state}</span>
      </h2>
      <pre tabIndex={0} aria-label="Command">
        {visible(line.run)}
      </pre>
      <dl className="wide">
        <div>
          <dt>in</dt>
          <dd>{line.folder === "." ? "the folder of the project itself" : <code>{visible(line.folder)}</code>}</dd>
        </div>
        <div>
          <dt>time limit</dt>
          <dd>{line.seconds} s</dd>
        </div>
        <div>
          <dt>expects</dt>
          <dd>{visible(line.expects)}</dd>
        </div>
        {line.condition && (
          <div>
            <dt>only when</dt>
            <dd>
              <code>{visible(line.condition)}</code>
            </dd>
          </div>
        )}
        {trusted && line.state === "changed" && (
          <div>
            <dt>trusted was</dt>
            <dd>
              <code>{visible(trusted.run)}</code>
              {trusted.run === line.run && " (its folder, time limit, expectation or condition was another)"}
            </dd>
          </div>
        )}
        {trusted && (
          <div>
            <dt>trusted by</dt>
            <dd>
              {visible(trusted.by)} ({trusted.channel}), <Time at={trusted.at} />
            </dd>
          </div>
        )}
      </dl>
      {canDecide && (
        <p className="row">
          {line.state !== "trusted" && (
            <button type="button" className="button primary" onClick={() => onChange(false)}>
              Let the server run {visible(line.check)}
            </button>
          )}
          {line.trusted && (
            <button type="button" className="button" onClick={() => onChange(true)}>
              Take trust in {visible(line.check)} back
            </button>
          )}
        </p>
      )}
    </article>
  );
}
