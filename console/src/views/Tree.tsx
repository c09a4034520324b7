import { visible } from "../markdown";
import { address } from "../api";
import { Link, useRoute, withQuery } from "../router";
import type { LaneNode, LaneTree } from "../types";

const ROW = 30;
const MOST_LANES = 6;
const CAUSES: Record<string, string> = { non_tip_advance: "fork" };

/** The nodes of a run. Notes and probes are collapsed unless the address asks for all. */
export function Branches({ tree, selected }: { tree: LaneTree; selected: number | null }) {
  const route = useRoute();
  const showsAll = route.query.get("all") === "1";
  const isSmall = ({ node }: LaneNode) => node.kind !== "step" || node.probe;
  const rows = tree.nodes.filter((each) => showsAll || !isSmall(each));
  const collapsed = tree.nodes.filter(isSmall).length;
  const all = new Map(tree.nodes.map((each) => [each.node.node, each]));
  const row = new Map(rows.map((each, index) => [each.node.node, index]));
  const x = (lane: number) => 9 + Math.min(lane, MOST_LANES) * 13;
  const y = (index: number) => index * ROW + ROW / 2;
  const shownParent = (each: LaneNode): LaneNode | undefined => {
    let parent = each.node.parent === null ? undefined : all.get(each.node.parent);
    while (parent && !row.has(parent.node.node)) parent = parent.node.parent === null ? undefined : all.get(parent.node.parent);
    return parent;
  };
  return (
    <>
      <h2>
        Nodes {tree.forks > 0 && <span className="quiet">{tree.forks === 1 ? "1 fork" : `${tree.forks} forks`}</span>}
      </h2>
      <div className="tree">
        <svg width={x(Math.min(tree.lanes - 1, MOST_LANES)) + 10} height={rows.length * ROW} aria-hidden="true">
          {rows.map((each, index) => {
            const parent = shownParent(each);
            if (!parent) return null;
            const [from, to, top, bottom] = [x(parent.lane), x(each.lane), y(row.get(parent.node.node) ?? 0), y(index)];
            return <path key={each.node.node} d={`M${from} ${top}V${bottom - 12}Q${from} ${bottom} ${to} ${bottom}`} className={each.onPath ? "on" : ""} />;
          })}
          {rows.map((each, index) => (
            <circle key={each.node.node} cx={x(each.lane)} cy={y(index)} r={each.node.preferred ? 5.5 : isSmall(each) ? 2.5 : 4} className={each.onPath ? "on" : ""} />
          ))}
        </svg>
        <ol aria-label="Nodes of this run">
          {rows.map(({ node, branch, onPath }) => (
            <li key={node.node} className={`${onPath ? "on" : ""} ${node.node === selected ? "selected" : ""}`}>
              <Link
                to={withQuery(route, { node: branch === tree.tip ? null : String(branch), at: String(node.kind === "step" ? node.node : node.parent), run: tree.runId })}
                aria-current={node.node === selected ? "true" : undefined}
                title={`Node ${node.node}: ${node.label}`}
              >
                {visible(node.label)}
              </Link>
              {CAUSES[node.cause] && (
                <span className="badge quiet" title={`Made when the agent went on from node ${node.parent}, which another branch had left already`}>
                  {CAUSES[node.cause]}
                </span>
              )}
              {node.diverged.length > 0 && (
                <span className="badge gaps" title={node.diverged.join(", ").replaceAll("_", " ")}>
                  diverged
                </span>
              )}
              {node.preferred && <span className="badge complete">tip</span>}
              {node.blocked > 0 && (
                <span className="badge blocked" title={`${node.blocked} blocked attempts`}>
                  {node.blocked}×
                </span>
              )}
            </li>
          ))}
        </ol>
      </div>
      <div className="buttons">
        {collapsed > 0 && (
          <Link className="button small" to={withQuery(route, { all: showsAll ? null : "1" })}>
            {showsAll ? "Hide notes and probes" : `Show ${collapsed === 1 ? "1 note or probe" : `${collapsed} notes and probes`}`}
          </Link>
        )}
        <CompareTips tree={tree} />
      </div>
    </>
  );
}

export function comparedTips(tree: LaneTree, reference: string): string | null {
  const other = tree.nodes.filter((each) => each.node.tip && !each.node.preferred).at(-1)?.node.node;
  if (other === undefined) return null;
  return address("compare", { left: reference, right: reference, leftRun: tree.runId, rightRun: tree.runId, leftNode: String(other), rightNode: String(tree.tip) });
}

function CompareTips({ tree }: { tree: LaneTree }) {
  const to = comparedTips(tree, useRoute().path[1] ?? "");
  if (!to) return null;
  return (
    <Link className="button small" to={to}>
      Compare the branches
    </Link>
  );
}
