// Where the labels of a graph's arrows go: beside their own arrow, and on no other arrow, card or label.
import type { GraphRoute, WorkflowGraph } from "./types";

type Point = [number, number];
interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}
export interface PlacedLabel extends Rect {
  route: GraphRoute;
  text: string;
}

const HEIGHT = 14;
const AWAY = 5;
const SAMPLES = 14;
const AT = [0.5, 0.6, 0.4, 0.72, 0.3, 0.84, 0.2];

const canvas = document.createElement("canvas").getContext("2d");

/** The width of a text as this browser draws it. */
export function measured(text: string, size: number, weight = 400): number {
  if (!canvas) return text.length * size * 0.6;
  canvas.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return canvas.measureText(text).width;
}

/** The text, cut where it would leave its room. */
export function fitting(text: string, room: number, size: number, weight = 400): string {
  if (measured(text, size, weight) <= room) return text;
  let kept = text;
  while (kept.length > 1 && measured(`${kept}…`, size, weight) > room) kept = kept.slice(0, -1);
  return `${kept.trimEnd()}…`;
}

function onCurve([x0, y0]: Point, [x1, y1]: Point, at: number): Point {
  const middle = (y0 + y1) / 2;
  const rest = 1 - at;
  return [x0 + (x1 - x0) * at * at * (3 - 2 * at), rest ** 3 * y0 + 3 * rest * at * middle + at ** 3 * y1];
}

function along(route: GraphRoute): Point[] {
  return route.points.slice(1).flatMap((to, index) => Array.from({ length: SAMPLES + 1 }, (_, step) => onCurve(route.points[index] as Point, to as Point, step / SAMPLES)));
}

const overlaps = (a: Rect, b: Rect) => a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
const holds = (rect: Rect, [x, y]: Point) => x > rect.x - 1 && x < rect.x + rect.width + 1 && y > rect.y && y < rect.y + rect.height;

export function placedLabels(graph: WorkflowGraph, longest: number): PlacedLabel[] {
  const lines = graph.routes.map(along);
  const placed: PlacedLabel[] = [];
  for (const route of graph.routes) {
    const [first, second] = route.points as [Point, Point];
    if (!route.label || !first || !second) continue;
    const text = fitting(route.label, longest, 10.5);
    const width = measured(text, 10.5) + 4;
    const isSelf = route.start === route.end;
    const candidates = (isSelf ? [1] : AT).flatMap((at): Rect[] => {
      const [x, y] = isSelf ? second : onCurve(first, second, at);
      const right = { x: x + AWAY, y: y - HEIGHT / 2, width, height: HEIGHT };
      const left = { x: x - AWAY - width, y: y - HEIGHT / 2, width, height: HEIGHT };
      const above = second[0] > first[0] ? { ...right, y: right.y - 6 } : { ...left, y: left.y - 6 };
      return [above, right, left];
    });
    const cost = (rect: Rect) =>
      (rect.x < -20 ? 50 : 0) +
      10 * placed.filter((other) => overlaps(rect, other)).length +
      10 * graph.boxes.filter((box) => overlaps(rect, box)).length +
      lines.filter((points) => points.some((point) => holds(rect, point))).length;
    let best = candidates[0];
    let least = Number.POSITIVE_INFINITY;
    for (const rect of candidates) {
      const found = cost(rect);
      if (found < least) [best, least] = [rect, found];
    }
    if (best) placed.push({ ...best, route, text });
  }
  return placed;
}
