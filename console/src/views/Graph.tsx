import { useMemo } from "react";
import { fitting, placedLabels } from "../graphLabels";
import type { WorkflowGraph } from "../types";
import { visible } from "../markdown";

const MARGIN = 24;
const LINE = 18;
const INDENT = 14;
const LONGEST_LABEL = 190;

interface GraphProps {
  graph: WorkflowGraph;
  visits?: Record<string, number>;
  current?: string;
  taken?: [string, string][];
}

/** The workflow as the server placed it: cards, marks for steps, gates and loops, and the path that was taken. */
export function Graph({ graph, visits = {}, current = "", taken = [] }: GraphProps) {
  const labels = useMemo(() => placedLabels(graph, LONGEST_LABEL), [graph]);
  const right = Math.max(graph.width, ...labels.map((label) => label.x + label.width));
  const left = Math.min(0, ...labels.map((label) => label.x));
  const width = right - left + 2 * MARGIN;
  const gone = new Set(taken.map((arrow) => arrow.join(" ")));
  const isTaken = (route: { start: string; end: string }) => gone.has(`${route.start} ${route.end}`);
  const height = graph.height + 2 * MARGIN;
  return (
    <figure className="graph">
      <div className="scroll" tabIndex={0} role="region" aria-label="Workflow graph">
        <svg width={width} height={height} role="img" aria-label="The workflow: activities with their steps, gates and loops">
          <defs>
            <marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
              <path d="M0 0L8 4L0 8z" className="head" />
            </marker>
            <marker id="tip-taken" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto-start-reverse">
              <path d="M0 0L8 4L0 8z" className="head taken" />
            </marker>
          </defs>
          <g transform={`translate(${MARGIN - left} ${MARGIN})`}>
            {[...graph.routes]
              .sort((a, b) => Number(isTaken(a)) - Number(isTaken(b)))
              .map((route) => (
                <path
                  key={`${route.start} ${route.end}`}
                  className={`route ${route.back ? "back" : ""} ${isTaken(route) ? "taken" : ""}`}
                  d={curve(route.points)}
                  markerEnd={isTaken(route) ? "url(#tip-taken)" : "url(#tip)"}
                />
              ))}
            {graph.boxes.map((box) => (
              <g key={box.id} transform={`translate(${box.x} ${box.y})`}>
                <rect className="card" width={box.width} height={box.height} rx={box.lines.length ? 8 : 12} />
                {box.lines.length === 0 && (
                  <text x={box.width / 2} y={16} textAnchor="middle">
                    {box.title}
                  </text>
                )}
                {box.lines.map((line, index) => {
                  const x = 12 + line.depth * INDENT;
                  const y = 18 + index * LINE;
                  const count = line.item ? (visits[line.item] ?? 0) : 0;
                  const isCurrent = line.item !== "" && line.item === current;
                  return (
                    <g key={index} className={isCurrent ? "current" : count ? "visited" : ""}>
                      {line.span > 0 && <rect className="frame" x={x - 5} y={y - 14} width={box.width - x - 3} height={(line.span + 1) * LINE} rx={5} />}
                      {line.mark === "d" && <circle className="dot" cx={x + 4} cy={y - 4} r={3.4} />}
                      {line.mark === "g" && <path className="gate" d={`M${x - 1} ${y - 4}l5 -5l5 5l-5 5z`} />}
                      {line.mark === "r" && <circle className="loop" cx={x + 4} cy={y - 4} r={3.8} />}
                      <text className={line.css === "h" ? "title" : line.css === "n" ? "note" : "item"} x={line.mark ? x + 14 : x} y={y}>
                        <title>{visible(line.text)}</title>
                        {fitting(visible(line.text), box.width - (line.mark ? x + 14 : x) - (count > 1 ? 28 : 6), line.css === "n" ? 10.5 : 12, line.css === "h" || count || isCurrent ? 700 : 400)}
                      </text>
                      {count > 1 && (
                        <text className="count" x={box.width - 8} y={y} textAnchor="end">
                          {count}×
                        </text>
                      )}
                    </g>
                  );
                })}
              </g>
            ))}
            {labels.map((label, index) => (
              <g key={index}>
                <rect className="plate" x={label.x} y={label.y} width={label.width} height={label.height} rx={3} />
                <text className="label" x={label.x + 2} y={label.y + 10.5}>
                  <title>{label.route.label}</title>
                  {visible(label.text)}
                </text>
              </g>
            ))}
          </g>
        </svg>
      </div>
      <figcaption className="legend">
        <span>
          <svg viewBox="0 0 14 14" aria-hidden="true">
            <circle className="dot" cx="7" cy="7" r="3.4" />
          </svg>
          step
        </span>
        <span>
          <svg viewBox="0 0 14 14" aria-hidden="true">
            <path className="gate" d="M2 7l5 -5l5 5l-5 5z" />
          </svg>
          gate
        </span>
        <span>
          <svg viewBox="0 0 14 14" aria-hidden="true">
            <circle className="loop" cx="7" cy="7" r="3.8" />
          </svg>
          loop, with a frame around what it repeats
        </span>
        <span>
          <svg viewBox="0 0 14 14" aria-hidden="true">
            <path className="route back" d="M0 7H14" />
          </svg>
          back to an earlier activity
        </span>
        {taken.length > 0 && (
          <span>
            <svg viewBox="0 0 14 14" aria-hidden="true">
              <path className="route taken" d="M0 7H14" />
            </svg>
            the path that was taken
          </span>
        )}
      </figcaption>
    </figure>
  );
}

function curve(points: [number, number][]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first[0]} ${first[1]}`;
  let [x, y] = first;
  for (const [toX, toY] of rest) {
    const middle = (y + toY) / 2;
    path += `C${x} ${middle} ${toX} ${middle} ${toX} ${toY}`;
    [x, y] = [toX, toY];
  }
  return path;
}
