// Written by tools/console_types.py from the structs of the server. Do not edit.

export interface InboxPage {
  questions: Array<InboxLine>;
  total: number;
  matching: number;
  rows: number;
  offset: number;
  fresh: number;
  newest: number;
  counting: boolean;
  workflows: Array<InboxChoice>;
  projects: Array<InboxChoice>;
  owners: Array<InboxChoice>;
  deciders: Array<InboxChoice>;
  needsPin: boolean;
  canDecide: boolean;
}

export interface InboxLine {
  place: string;
  question: AskedQuestion;
  owner: string;
  ref: string;
  title: string;
  name: string;
  excerpt: string;
  since: number;
  dueAt: number;
  workflowId: string;
  project: string;
  equal: string;
  decide: Approving | null;
  equals: number;
  mayDecide: boolean;
}

export interface AskedQuestion {
  sessionId: string;
  node: number;
  id: string;
  shown: string;
  runId: string;
  key: string;
}

export interface Approving {
  by: Array<string>;
  atLeast: number;
  answered: Array<GivenApproval>;
  missing: Array<string>;
  notBy: string;
  until: number;
  then: string;
  escalatedTo: string;
}

export interface GivenApproval {
  by: string;
  option: string;
  at: number;
  channel: string;
  seat: string;
}

export interface InboxChoice {
  value: string;
  count: number;
}

export interface InboxQuestion {
  line: InboxLine;
  question: WaitingQuestion;
  substance: Substance;
}

export interface WaitingQuestion {
  sessionId: string;
  node: number;
  id: string;
  shown: string;
  runId: string;
  key: string;
  ref: string;
  title: string;
  name: string;
  message: string;
  options: Array<QuestionOption>;
  since: number;
  default: string;
  defaultAt: number;
  decide: Approving | null;
}

export interface QuestionOption {
  id: string;
  label: string;
  description: string;
  effect: string;
}

export interface Substance {
  handedIn: HandedIn | null;
  shortened: boolean;
  checks: Array<ShownCheck>;
  gaps: Array<KnownGap>;
  follows: Array<WhatFollows>;
}

export interface HandedIn {
  at: number;
  notes: Array<string>;
  artifacts: Array<ShownArtifact>;
  blockers: Array<Blocker>;
  checks: Array<ShownCheck>;
}

export interface ShownArtifact {
  kind: string;
  title: string;
  headline: string;
  tone: "bad" | "good" | "neutral" | "warning";
  facts: Array<ArtifactFact>;
  header: ReviewHeader | null;
  log: Array<LoggedRevision>;
  files: Array<ChangedFile>;
  findings: Array<ReviewFinding>;
  comments: Array<ReviewComment>;
  checks: Array<VerifiedCheck>;
  rules: Array<RuleChange>;
  rest: Record<string, unknown>;
}

export interface ArtifactFact {
  name: string;
  text: string;
}

export interface ReviewHeader {
  title: string;
  classification: string;
  focusAreas: Array<string>;
  more: Record<string, unknown>;
  revision: Revision | null;
}

export interface Revision {
  number: number;
  node: number;
  step: string;
  at: number;
}

export interface LoggedRevision {
  text: string;
  revision: Revision | null;
}

export interface ChangedFile {
  path: string;
  change: string;
  summary: string;
  risk: string;
  additions: number | null;
  deletions: number | null;
  more: Record<string, unknown>;
  revision: Revision | null;
}

export interface ReviewFinding {
  id: string;
  severity: string;
  tone: "bad" | "good" | "neutral" | "warning";
  title: string;
  file: string;
  line: number | null;
  rationale: string;
  suggestion: string;
  more: Record<string, unknown>;
  revision: Revision | null;
}

export interface ReviewComment {
  title: string;
  file: string;
  line: number | null;
  body: string;
  more: Record<string, unknown>;
  revision: Revision | null;
}

export interface VerifiedCheck {
  name: string;
  result: string;
  tone: "bad" | "good" | "neutral" | "warning";
  evidence: string;
  more: Record<string, unknown>;
  revision: Revision | null;
}

export interface RuleChange {
  op: string;
  rule: string;
  replaces: string;
  reason: string;
  more: Record<string, unknown>;
  revision: Revision | null;
}

export interface Blocker {
  code: BlockerCode;
  pointer: ContextKey | ContractPointer | CapabilityPointer | WorkflowStep;
  message: string;
  requirement: string;
  example: unknown;
  rejected: boolean;
}

export type BlockerCode = "INVALID_REQUIRED_OUTPUT" | "INVARIANT_VIOLATION" | "MISSING_REQUIRED_OUTPUT" | "REQUIRED_CAPABILITY_UNAVAILABLE" | "REQUIRED_CAPABILITY_UNKNOWN" | "STORAGE_CORRUPTION_DETECTED" | "USER_ONLY_DEPENDENCY";

export interface ContextKey {
  kind: "context_key";
  key: string;
}

export interface ContractPointer {
  kind: "output_contract";
  contractRef: string;
}

export interface CapabilityPointer {
  kind: "capability";
  capability: "delegation" | "web_browsing";
}

export interface WorkflowStep {
  kind: "workflow_step";
  stepId: string;
}

export interface ShownCheck {
  id: string;
  by: "agent" | "server";
  passed: boolean;
  outcome: string;
  command: string;
  folder: string;
  at: number;
  durationMs: number;
  output: string;
  reason: string;
  head: string;
  tree: string;
  trustedBy: string;
}

export interface KnownGap {
  number: number;
  severity: "critical" | "info" | "warning";
  summary: string;
  resolved: string;
  users: boolean;
}

export interface WhatFollows {
  option: string;
  pending: PendingLine | null;
}

export interface PendingLine {
  kind: "choice" | "decision" | "input" | "nothing" | "step";
  id: string;
  title: string;
}

export interface RunsPage {
  lines: Array<RunLine>;
  offset: number;
  limit: number;
  more: boolean;
  points: Array<RunPoint>;
  projects: Array<string>;
  views: Array<SavedView>;
  staleHours: number;
  leftOut: boolean;
}

export interface RunLine {
  sessionId: string;
  owner: string;
  ref: string;
  title: string;
  status: string;
  workflowId: string;
  awaiting: string;
  runs: number;
  steps: number;
  gaps: number;
  branch: string;
  project: string;
  createdAt: number;
  updatedAt: number;
  keep: boolean;
}

export interface RunPoint {
  sessionId: string;
  ref: string;
  title: string;
  status: string;
  startedAt: number;
  milliseconds: number;
}

export interface SavedView {
  name: string;
  query: string;
}

export interface RemovalPage {
  at: number;
  lines: Array<RemovalLine>;
}

export interface RemovalLine {
  sessionId: string;
  ref: string;
  title: string;
  status: string;
  outcome: "deleted" | "kept" | "waiting";
}

export interface RunsChanged {
  message: string;
  sessions: number;
}

export interface SessionPage {
  status: SessionStatus;
  notes: Array<string>;
  modes: Array<ModeLine>;
  runs: Array<SessionRun>;
  lanes: Array<SessionLane>;
  trees: Array<LaneTree>;
  runId: string;
  story: RunStory | null;
  forks: Array<Fork>;
  timeline: RunTimeline | null;
  questions: Array<WaitingQuestion>;
  untrusted: Array<string>;
}

export interface SessionStatus {
  sessionId: string;
  ref: string;
  title: string;
  health: string;
  reason: string;
  events: number;
  createdAt: number;
  updatedAt: number;
  keep: boolean;
  observed: Record<string, string>;
  runs: Array<RunStatus>;
}

export interface RunStatus {
  runId: string;
  workflowId: string;
  workflowHash: string;
  status: string;
  mode: "guided" | "never-stop" | "stop";
  autonomy: "full_auto_never_stop" | "full_auto_stop_on_user_deps" | "guided";
  riskPolicy: "aggressive" | "balanced" | "conservative";
  pending: PendingLine;
  decided: string | null;
  gaps: number;
  gapList: Array<KnownGap>;
  tip: number;
  branches: number;
  startedAt: number;
  updatedAt: number;
  abandoned: string | null;
}

export interface ModeLine {
  mode: "guided" | "never-stop" | "stop";
  label: string;
  description: string;
  autonomy: "full_auto_never_stop" | "full_auto_stop_on_user_deps" | "guided";
  riskPolicy: "aggressive" | "balanced" | "conservative";
  runId: string | null;
  node: number | null;
}

export interface SessionRun {
  runId: string;
  workflowId: string;
  title: string;
  status: string;
  branches: number;
  startedAt: number;
  updatedAt: number;
}

export interface SessionLane {
  runId: string;
  name: string;
  status: string;
  start: number;
  end: number;
  marks: Array<SessionMark>;
}

export interface SessionMark {
  at: number;
  text: string;
}

export interface LaneTree {
  runId: string;
  workflowId: string;
  status: string;
  tip: number;
  forks: number;
  lanes: number;
  nodes: Array<LaneNode>;
}

export interface LaneNode {
  node: TreeNode;
  lane: number;
  onPath: boolean;
  branch: number;
}

export interface TreeNode {
  node: number;
  parent: number | null;
  kind: "note" | "step";
  cause: "advanced" | "non_tip_advance" | "noted" | "started";
  label: string;
  at: number;
  tip: boolean;
  preferred: boolean;
  blocked: number;
  pending: PendingLine;
  diverged: Array<string>;
  probe: boolean;
}

export interface RunStory {
  runId: string;
  tip: number;
  steps: Array<StoryStep>;
  omitted: number;
}

export interface StoryStep {
  node: number;
  kind: string;
  item: string;
  id: string;
  title: string;
  prompt: string;
  askedAt: number;
  doneAt: number | null;
  handedIn: HandedIn | null;
  blocked: Array<HandedIn>;
  noted: Array<HandedIn>;
  checks: Array<ShownCheck>;
  decisions: Array<StoryDecision>;
  marks: Array<StoryMark>;
  activity: string;
  loop: string;
  probe: boolean;
}

export interface StoryDecision {
  gate: string;
  option: string;
  how: string;
  channel: string;
  strength: "agent" | "client" | "none" | "user";
  client: string;
  note: string;
  question: string;
  at: number;
}

export interface StoryMark {
  kind: "activity" | "capability" | "child" | "divergence" | "ended" | "gap" | "loop" | "mode" | "resolved" | "skipped";
  text: string;
  weight: "critical" | "info" | "warning";
}

export interface Fork {
  node: number;
  child: number;
  branch: number;
  label: string;
  cause: "first" | "rewound";
}

export interface RunTimeline {
  start: number;
  end: number;
  working: number;
  waiting: number;
  lanes: Array<TimelineLane>;
  checks: Array<TimelineCheck>;
}

export interface TimelineLane {
  name: string;
  kind: "activity" | "loop";
  working: number;
  waiting: number;
  bars: Array<TimelineBar>;
}

export interface TimelineBar {
  node: number;
  id: string;
  title: string;
  waiting: boolean;
  start: number;
  end: number;
  open: boolean;
}

export interface TimelineCheck {
  node: number;
  id: string;
  passed: boolean;
  outcome: string;
  start: number;
  end: number;
}

export interface NodePage {
  node: number;
  parent: number | null;
  kind: string;
  createdAt: number;
  activity: string;
  pending: PendingLine;
  mode: string;
  variables: Record<string, unknown>;
  gaps: Array<KnownGap>;
}

export interface ForkText {
  text: string;
}

export interface EventsPage {
  sessionId: string;
  total: number;
  start: number;
  kinds: Array<string>;
  events: Array<EventRow>;
}

export interface EventRow {
  index: number;
  kind: string;
  at: number;
  run: number | null;
  node: number | null;
  principal: string;
  summary: string;
  event: Record<string, unknown>;
}

export interface BranchArtifacts {
  runId: string;
  tip: number;
  artifacts: number;
  omitted: number;
  header: ReviewHeader | null;
  log: Array<LoggedRevision>;
  files: Array<ChangedFile>;
  findings: Array<ReviewFinding>;
  comments: Array<ReviewComment>;
  checks: Array<VerifiedCheck>;
  rules: Array<RuleChange>;
}

export interface RunGraph {
  graph: WorkflowGraph;
  visits: Record<string, number>;
  current: string;
  taken: Array<[string, string]>;
}

export interface WorkflowGraph {
  width: number;
  height: number;
  boxes: Array<GraphBox>;
  routes: Array<GraphRoute>;
}

export interface GraphBox {
  id: string;
  title: string;
  x: number;
  y: number;
  width: number;
  height: number;
  lines: Array<Line>;
}

export interface Line {
  text: string;
  depth: number;
  css: string;
  mark: string;
  span: number;
  item: string;
}

export interface GraphRoute {
  start: string;
  end: string;
  label: string;
  points: Array<[number, number]>;
  back: boolean;
}

export interface Comparison {
  left: ComparedSide;
  right: ComparedSide;
  steps: Array<ComparedStep>;
}

export interface ComparedSide {
  sessionId: string;
  ref: string;
  runId: string;
  tip: number;
  title: string;
  workflowId: string;
  status: string;
  working: number;
  waiting: number;
  gaps: number;
  blocked: number;
  choices: Array<BranchChoice>;
}

export interface BranchChoice {
  runId: string;
  tip: number;
  label: string;
}

export interface ComparedStep {
  left: StoryStep | null;
  right: StoryStep | null;
  shared: boolean;
  differences: Array<"artifacts" | "decisions" | "notes" | "only_left" | "only_right">;
  onlyLeft: OnlyHere;
  onlyRight: OnlyHere;
}

export interface OnlyHere {
  notes: Array<number>;
  artifacts: Array<number>;
  decisions: Array<number>;
}

export interface WorkflowsPage {
  workflows: Array<WorkflowLine>;
  diagnostics: Array<DiagnosticLine>;
}

export interface WorkflowLine {
  id: string;
  name: string;
  description: string;
  version: string;
  kind: string;
  form: string;
  source: string;
  hash: string;
  size: number;
  tokens: number;
  errors: number;
  warnings: number;
  shadows: Array<string>;
}

export interface DiagnosticLine {
  code: string;
  severity: string;
  message: string;
  nextAction: string;
  file: string;
  line: number;
  workflowId: string;
}

export interface WorkflowPage {
  id: string;
  name: string;
  description: string;
  version: string;
  source: string;
  hash: string;
  size: number;
  tokens: number;
  graph: WorkflowGraph;
  items: Array<WorkflowItem>;
  variables: Array<WorkflowVariable>;
  contracts: Array<WorkflowContract>;
  uses: Array<string>;
  usedBy: Array<string>;
  shadowed: Array<string>;
  diagnostics: Array<DiagnosticLine>;
  runs: Array<RunLine>;
  users: Array<WorkflowUser>;
}

export interface WorkflowItem {
  activity: string;
  kind: string;
  id: string;
  title: string;
  depth: number;
  note: string;
  text: string;
  contracts: Array<string>;
  checks: Array<string>;
  confirms: boolean;
  options: Array<QuestionOption>;
}

export interface WorkflowVariable {
  name: string;
  type: string;
  description: string;
  required: boolean;
  default: string;
}

export interface WorkflowContract {
  ref: string;
  artifact: string;
  required: boolean;
  steps: Array<string>;
  example: unknown;
}

export interface WorkflowUser {
  name: string;
  sessions: number;
  updatedAt: number;
}

export interface SimulationPage {
  workflowId: string;
  name: string;
  hash: string;
  answers: string;
  items: Array<SimulatedItem>;
  choices: Array<SimulatedChoice>;
  ended: string;
  variables: Record<string, unknown>;
}

export interface SimulatedItem {
  pending: PendingLine;
  id: string;
  activity: string;
  prompt: string;
  chosen: string;
  marks: Array<StoryMark>;
}

export interface SimulatedChoice {
  label: string;
  effect: string;
  follows: PendingLine;
}

export interface BuiltinsPage {
  builtins: Array<BuiltinLine>;
}

export interface BuiltinLine {
  kind: "capability" | "contract" | "feature" | "ref" | "template";
  ref: string;
  title: string;
  details: string;
  insert: string;
  artifact: string;
  example: unknown;
}

export interface SearchPage {
  query: string;
  hits: Array<SearchHit>;
  more: boolean;
  leftOut: boolean;
  workflows: Array<WorkflowHit>;
  builtins: Array<BuiltinHit>;
}

export interface SearchHit {
  sessionId: string;
  ref: string;
  title: string;
  workflowId: string;
  status: string;
  why: string;
  snippet: string;
  updatedAt: number;
}

export interface WorkflowHit {
  id: string;
  name: string;
  description: string;
  items: Array<ItemHit>;
}

export interface ItemHit {
  id: string;
  title: string;
}

export interface BuiltinHit {
  kind: string;
  ref: string;
  title: string;
}

export interface HealthPage {
  version: string;
  principal: string;
  role: string;
  hasPin: boolean;
  newSessions: ModeLine;
  sources: Array<string>;
  workflows: number;
  errors: number;
  facts: Array<HealthFact>;
  clients: Array<HeardClient>;
  notifications: NotificationsLine | null;
  canCheck: boolean;
}

export interface HealthFact {
  name: string;
  value: string;
}

export interface HeardClient {
  owner: string;
  name: string;
  version: string;
  surface: string;
  at: number;
}

export interface NotificationsLine {
  channels: Array<string>;
  waiting: number;
  dead: number;
  messages: Array<UnsentMessage>;
}

export interface UnsentMessage {
  id: string;
  channel: string;
  event: string;
  session: string;
  state: "dead" | "waiting";
  tries: number;
  createdAt: number;
  nextTryAt: number | null;
  error: string;
}

export interface DoctorReport {
  ok: boolean;
  checks: Array<DoctorLine>;
  milliseconds: number;
  unfinished: string;
}

export interface DoctorLine {
  name: string;
  ok: boolean;
  detail: string;
  fix: string;
}

export interface SettingsPage {
  settings: Array<SettingLine>;
}

export interface SettingLine {
  name: string;
  value: string;
  origin: string;
}

export interface TrustPage {
  workflow: string;
  name: string;
  folder: string;
  checks: Array<TrustLine>;
  claimed: Array<string>;
  owner: string;
  owners: Array<string>;
  needsPin: boolean;
  canDecide: boolean;
}

export interface TrustLine {
  check: string;
  state: "changed" | "trusted" | "untrusted";
  run: string;
  folder: string;
  seconds: number;
  expects: string;
  condition: string;
  definition: string;
  trusted: TrustedBefore | null;
}

export interface TrustedBefore {
  run: string;
  by: string;
  channel: "agent" | "approvers" | "cli" | "console" | "elicitation" | "inbox" | "link" | "server" | "time";
  at: number;
}

export interface ActionDone {
  message: string;
  sessionId: string;
}

export interface ConsoleError {
  code: string;
  message: string;
  nextAction: string;
}

export interface DecideRequest {
  sessionId: string;
  runId: string;
  node: number;
  id: string;
  key: string;
  shown: string;
  option: string;
  owner?: string;
  note?: string;
  pin?: string;
}

export interface NoteRequest {
  sessionId: string;
  notes: string;
}

export interface ModeRequest {
  sessionId: string;
  mode: "guided" | "never-stop" | "stop";
  pin?: string;
}

export interface ForkRequest {
  sessionId: string;
  node: number;
}

export interface AbandonRequest {
  sessionId: string;
  runId: string;
  reason?: string;
}

export interface KeepRequest {
  sessionIds: Array<string>;
  keep: boolean;
}

export interface RemoveRequest {
  sessionIds: Array<string>;
  at: number;
  waiting?: boolean;
}

export interface ViewRequest {
  name: string;
  query?: string | null;
}

export interface TrustRequest {
  workflow: string;
  check: string;
  definition: string;
  folder: string;
  sessionId?: string;
  owner?: string;
  revoke?: boolean;
  pin?: string;
}
