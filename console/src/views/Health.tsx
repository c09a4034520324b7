import { useState } from "react";
import { act, Refused, usePage } from "../api";
import { visible } from "../markdown";
import { Link } from "../router";
import type { ConsoleError, DoctorReport, HealthPage, NotificationsLine, SettingsPage } from "../types";
import { Clock, Command, ErrorBox, Skeleton, Time, duration } from "../ui";

export function Health() {
  const { data, error } = usePage<HealthPage>("health", {}, "");
  if (error) return <ErrorBox error={error} />;
  if (!data) return <Skeleton />;
  return (
    <>
      <header className="page-head">
        <h1>Health</h1>
        <p className="quiet">
          Interlock {data.version}, as {data.principal} ({data.role}). <Link to="/console/settings">Settings</Link> show each value and where it comes from.
        </p>
      </header>
      <section>
        <h2>This server</h2>
        <dl className="wide">
          {data.facts.map((fact) => (
            <div key={fact.name}>
              <dt>{fact.name}</dt>
              <dd>{visible(fact.value)}</dd>
            </div>
          ))}
          <div>
            <dt>new sessions begin in mode</dt>
            <dd>
              {data.newSessions.mode}, {data.newSessions.riskPolicy} risk
            </dd>
          </div>
          <div>
            <dt>PIN for decisions</dt>
            <dd>
              {data.hasPin ? (
                "set"
              ) : (
                <>
                  not set; <code>interlock config pin</code> sets one
                </>
              )}
            </dd>
          </div>
          <div>
            <dt>workflows</dt>
            <dd>
              <Link to="/console/workflows">{data.workflows}</Link>, {data.errors === 0 ? "no errors" : `${data.errors} errors`}
            </dd>
          </div>
          <div>
            <dt>sources</dt>
            <dd>{visible(data.sources.join(", "))}</dd>
          </div>
        </dl>
      </section>
      <section>
        <h2>Clients</h2>
        {data.clients.length === 0 ? (
          <p className="quiet">No client has called a tool yet.</p>
        ) : (
          <div className="table-wrap">
            <table>
              <thead>
                <tr>
                  <th scope="col">Client</th>
                  <th scope="col">Surface</th>
                  <th scope="col">Works for</th>
                  <th scope="col">Last heard</th>
                </tr>
              </thead>
              <tbody>
                {data.clients.map((client) => (
                  <tr key={`${client.owner} ${client.name} ${client.version} ${client.surface}`}>
                    <th scope="row">
                      {visible(client.name)} <span className="quiet">{visible(client.version)}</span>
                    </th>
                    <td data-label="Surface">{client.surface}</td>
                    <td data-label="Works for">{visible(client.owner)}</td>
                    <td data-label="Last heard">
                      <Time at={client.at} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
        <p className="quiet">By the name that each gives itself, when it last called a tool, right to a minute.</p>
      </section>
      {data.notifications && <Notifications line={data.notifications} />}
      {data.canCheck && <Doctor />}
    </>
  );
}

/** The outbox: where messages go, and what no channel has taken. */
function Notifications({ line }: { line: NotificationsLine }) {
  const { channels, waiting, dead, messages } = line;
  return (
    <section>
      <h2>Notifications</h2>
      <p>
        {channels.length > 0 ? (
          <>
            Sent to <strong>{visible(channels.join(", "))}</strong>.
          </>
        ) : (
          <span className="quiet">No channel is configured, so nothing is sent.</span>
        )}{" "}
        {dead > 0 && (
          <>
            <span className="badge blocked">{dead} undeliverable</span>{" "}
          </>
        )}
        {waiting > 0 ? <span className="badge waiting">{waiting} waiting</span> : dead === 0 && channels.length > 0 && <span className="badge complete">all sent</span>}
      </p>
      {messages.length > 0 && (
        <div className="table-wrap">
          <table>
            <thead>
              <tr>
                <th scope="col">Channel</th>
                <th scope="col">State</th>
                <th scope="col">About</th>
                <th scope="col">Tries</th>
                <th scope="col">Last error</th>
              </tr>
            </thead>
            <tbody>
              {messages.map((message) => (
                <tr key={`${message.id} ${message.channel}`}>
                  <th scope="row">{visible(message.channel) || "timer"}</th>
                  <td data-label="State">
                    <span className={`badge ${message.state === "dead" ? "blocked" : "waiting"}`}>{message.state === "dead" ? "undeliverable" : "waiting"}</span>{" "}
                    {message.nextTryAt !== null && (
                      <span className="quiet">
                        next try <Clock at={message.nextTryAt} />
                      </span>
                    )}
                  </td>
                  <td data-label="About">
                    {message.event}, <Time at={message.createdAt} />
                  </td>
                  <td data-label="Tries">{message.tries}</td>
                  <td data-label="Last error">{visible(message.error) || "–"}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {waiting + dead > messages.length && <p className="quiet">{waiting + dead - messages.length} more are listed by the command.</p>}
      {waiting + dead > 0 && <Command text={dead > 0 ? "interlock notify retry" : "interlock notify status"} />}
    </section>
  );
}

/** Everything that is stored, checked on request. */
function Doctor() {
  const [report, setReport] = useState<DoctorReport | null>(null);
  const [refused, setRefused] = useState<ConsoleError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const check = () => {
    setRunning(true);
    setRefused(null);
    act<DoctorReport>("doctor", {})
      .then(setReport, (error: unknown) => {
        if (!(error instanceof Refused)) throw error;
        setRefused(error.error);
      })
      .finally(() => setRunning(false));
  };
  return (
    <section>
      <h2>Doctor</h2>
      <p className="quiet">Checks keys, files, every event and every row. It changes nothing; on a large store it takes a while.</p>
      <p className="row">
        <button type="button" className="button" onClick={check} disabled={isRunning}>
          {isRunning ? "Checking…" : "Check what is stored"}
        </button>
      </p>
      <div role="status">
        {report && (
          <p>
            <span className={`badge ${report.ok ? "complete" : "blocked"}`}>{report.ok ? "sound" : "needs attention"}</span> {report.unfinished || `${report.checks.length} checks in ${duration(report.milliseconds)}`}
          </p>
        )}
      </div>
      {refused && <ErrorBox error={refused} />}
      {report && (
        <ul className="findings">
          {report.checks.map((line, index) => (
            <li key={index}>
              <span className={`badge ${line.ok ? "complete" : "blocked"}`}>{line.ok ? "ok" : "wrong"}</span>
              <strong>{line.name}</strong> <span>{visible(line.detail)}</span>
              {!line.ok && line.fix && <Command text={line.fix} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

export function Settings() {
  const { data, error } = usePage<SettingsPage>("settings", {}, "");
  if (error) return <ErrorBox error={error} />;
  if (!data) return <Skeleton />;
  return (
    <>
      <header className="page-head">
        <p className="crumbs">
          <Link to="/console/health">Health</Link> / settings
        </p>
        <h1>Settings</h1>
        <p className="quiet">Each value and where it comes from: a flag outranks a variable, that a project's file, that your own file.</p>
        <Command text="interlock config show" />
      </header>
      {data.settings.length === 0 ? (
        <p className="quiet">Settings are shown to the role admin.</p>
      ) : (
        <div className="table-wrap">
          <table>
            <thead>
              <tr>
                <th scope="col">Setting</th>
                <th scope="col">Value</th>
                <th scope="col">From</th>
              </tr>
            </thead>
            <tbody>
              {data.settings.map((line) => (
                <tr key={line.name}>
                  <th scope="row">
                    <code>{line.name}</code>
                  </th>
                  <td data-label="Value">{visible(line.value) || "–"}</td>
                  <td data-label="From">{line.origin}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
