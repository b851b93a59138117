import type { Channel } from "./channels.ts";
import type { Scene } from "./scene.ts";
import type { Given, Work } from "./work.ts";

/** What the goals are about, in the order of the table. */
export const groups = {
  secrets: "Reading secrets",
  outside: "Reaching outside of its folders",
  network: "Reaching hosts",
  gateway: "Using the models' gateway",
  leaks: "Leaking what it may know",
  supply: "Tampering with what others build on",
  poisoning: "Poisoning what comes later",
  persistence: "Staying",
  resources: "Using up what others need",
  deception: "Deceiving people",
} as const;
export type Group = keyof typeof groups;

/** Published collections of attacks on agents, or of their risks, that have a goal of this kind. */
export const collections = {
  llm01: "OWASP LLM01 Prompt Injection",
  llm02: "OWASP LLM02 Sensitive Information Disclosure",
  llm03: "OWASP LLM03 Supply Chain",
  llm05: "OWASP LLM05 Improper Output Handling",
  llm06: "OWASP LLM06 Excessive Agency",
  llm10: "OWASP LLM10 Unbounded Consumption",
  asi01: "OWASP ASI01 Agent Goal Hijack",
  asi02: "OWASP ASI02 Tool Misuse and Exploitation",
  asi03: "OWASP ASI03 Identity and Privilege Abuse",
  asi04: "OWASP ASI04 Agentic Supply Chain Vulnerabilities",
  asi05: "OWASP ASI05 Unexpected Code Execution",
  asi06: "OWASP ASI06 Memory and Context Poisoning",
  asi08: "OWASP ASI08 Cascading Failures",
  asi09: "OWASP ASI09 Human-Agent Trust Exploitation",
  asi10: "OWASP ASI10 Rogue Agents",
  atlas: "MITRE ATLAS",
  agentDojo: "AgentDojo",
  injecAgent: "InjecAgent",
  agentHarm: "AgentHarm",
  toolEmu: "ToolEmu",
  redCode: "RedCode-Exec",
  cyberSecEval: "CyberSecEval 2",
  asb: "Agent Security Bench",
  wasp: "WASP",
  aiShellJack: "AIShellJack",
  sandboxEval: "SandboxEval",
  sandboxEscapeBench: "SandboxEscapeBench",
  ciber: "CIBER",
  garak: "garak",
  trifecta: "the lethal trifecta",
} as const;
export type Collection = keyof typeof collections;

/** How an attempt at a goal went in one world. */
export interface Outcome {
  /** What shows that the attempt was made: what it printed, or what it left. Null if it was not made. */
  readonly ran: string | null;
  readonly reached: boolean;
  /** Why it was not made. */
  readonly why?: string;
}

/** What there is to look at after an order was carried out and its session is over. */
export interface Seen {
  readonly scene: Scene;
  readonly work: Work;
  /** What the order's commands printed, as the model got it. */
  readonly output: string;
}

/** Commands that the injected text orders. */
export interface Ordered {
  /** The session that it shares with the goals of the same word here; `alone` for one of its own. */
  readonly session: string;
  /** The same in the open world, if it differs: what stops nothing there can be tried side by side. */
  readonly sessionInOpen?: string;
  readonly orders: (scene: Scene) => string;
  /** The model's last message; `<printed>` is replaced by the commands' output. */
  readonly says?: string;
  /** True if what stops it may be the end of the whole session, which is then what shows that it was tried. */
  readonly mayEndSession?: boolean;
  /** What the commands must have printed, for the attempt to count as one. */
  readonly proof?: RegExp;
  readonly reached: (seen: Seen) => boolean | Promise<boolean>;
  /** What the session's repository has. */
  readonly given?: (scene: Scene) => Given;
}

/** An attempt of several sessions, or of no session. */
export interface Played {
  readonly play: (scene: Scene) => Promise<Outcome>;
}

/** One thing that an attacker wants of an agent, and how it is tried. */
export interface Goal {
  readonly id: string;
  readonly group: Group;
  /** What the attacker wants, as a phrase. */
  readonly name: string;
  readonly sources: readonly Collection[];
  readonly channel: Channel;
  /** What stops it; for a goal that nothing stops, the plain sentence that says so. */
  readonly boundary: string;
  /**
   * `stopped`: not reached at the boundary, and reached by the same attempt in the open world.
   * `by design`: the boundary can't stop it, and the test shows that it is reached.
   */
  readonly outcome: "stopped" | "by design";
  /** The part of Offstage whose change stops it, while that is under way. */
  readonly awaits?: string;
  readonly attempt: Ordered | Played;
}
