import { channels } from "./channels.ts";
import { collections, groups, type Goal, type Group } from "./goal.ts";

const groupIds = Object.keys(groups) as Group[];

/** @returns docs/security-goals.md */
export function pageOf(goals: readonly Goal[]): string {
  const stopped = goals.filter(({ outcome }) => outcome === "stopped");
  const counts = groupIds.map((group) => {
    const [all, some] = [goals, stopped].map((of) => of.filter((goal) => goal.group === group).length);
    return `| ${groups[group]} | ${all} | ${some} | ${(all ?? 0) - (some ?? 0)} |`;
  });
  return `# Goals of attackers

Most tests of prompt injection ask whether a model resists. These ask what happens when it does not: a scripted model does
everything that any text which it reads tells it, in real sessions, and the tests look at what was reached.

\`\`\`sh
npx vitest run test/obeying
\`\`\`

Each goal is tried twice by the same commands: at the boundary, and in a world without it, where the test must notice that
the goal is reached. An attempt that was not made fails as "did not run".

| | Goals | Stopped | Not stopped, by design |
|---|---|---|---|
${counts.join("\n")}
| **All** | **${goals.length}** | **${stopped.length}** | **${goals.length - stopped.length}** |

"As in" names published collections of attacks or risks that have a goal of this kind. The attempts are this project's own.
This page is made from the goals in \`test/obeying/goals\`; a test compares it
(\`npx vitest run test/obeying/table.test.ts --update\` writes it).

${groupIds.map((group) => sectionOf(group, goals)).join("\n")}`;
}

function sectionOf(group: Group, goals: readonly Goal[]): string {
  const own = goals.filter((goal) => goal.group === group);
  const stopped = own.filter(({ outcome }) => outcome === "stopped");
  const open = own.filter(({ outcome }) => outcome === "by design");
  return [
    `## ${groups[group]}\n`,
    ...(stopped.length === 0 ? [] : tableOf(stopped, "Stopped by")),
    ...(open.length === 0 ? [] : ["Not stopped, by design:\n", ...tableOf(open, "Why, and what to do")]),
  ].join("\n");
}

function tableOf(goals: readonly Goal[], last: string): string[] {
  const rows = goals.map(({ id, name, channel, sources, boundary }) => {
    const cells = [
      `\`${id}\``,
      name,
      channels[channel],
      sources.map((source) => collections[source]).join(", "),
      boundary,
    ];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  return [
    `| Goal | The injected text wants to | It is in the | As in | ${last} |`,
    "|---|---|---|---|---|",
    ...rows,
    "",
  ];
}
