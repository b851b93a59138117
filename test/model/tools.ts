import { isAbsolute, join } from "node:path";
import type { Conversation, OfferedTool, ToolAction } from "./script.ts";

export interface ToolCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** Names of tools, best first; harnesses call the same thing differently. */
const names = {
  write: /^(?:write|write_file|Write|writeFile|create_file)$/u,
  edit: /^(?:edit|Edit|replace|edit_file|str_replace)$/u,
  read: /^(?:read|Read|read_file|readFile)$/u,
  shell: /^(?:shell|bash|Bash|shell_command|exec_command|run_shell_command|local_shell|execute)$/u,
};

/** What each property of a tool's schema is filled with. */
const properties = {
  path: ["filePath", "file_path", "absolute_path", "path", "filename"],
  content: ["content", "contents", "text", "file_text"],
  oldText: ["oldString", "old_string", "oldText", "old_str"],
  newText: ["newString", "new_string", "newText", "new_str"],
  command: ["command", "cmd", "script"],
} as const;

/** @throws if the harness offers no tool that can do it */
export function toolCallFor(action: ToolAction, conversation: Conversation): ToolCall {
  if ("tool" in action) {
    const { name, input } = action.tool;
    const found = conversation.tools.find((offered) => offered.name.endsWith(name));
    if (found === undefined) throw new Error(`the harness offers no tool ${name}`);
    return { name: found.name, arguments: input };
  }
  const { kind, values } = valuesOf(action, conversation);
  const tool = conversation.tools.find((offered) => names[kind].test(offered.name));
  if (tool !== undefined) return { name: tool.name, arguments: fill(tool, values) };
  const shell = conversation.tools.find((offered) => names.shell.test(offered.name));
  if (shell !== undefined) return { name: shell.name, arguments: fill(shell, { command: asCommand(action) }) };
  const offered = conversation.tools.map(({ name }) => name).join(", ");
  throw new Error(`the harness offers no tool to ${kind} with, only: ${offered}`);
}

type Values = Partial<Record<keyof typeof properties, string>>;

type OwnAction = Exclude<ToolAction, { tool: unknown }>;

function valuesOf(action: OwnAction, conversation: Conversation): { kind: keyof typeof names; values: Values } {
  // Some harnesses take absolute paths only.
  const absolute = (path: string): string =>
    isAbsolute(path) || conversation.workingDirectory === null ? path : join(conversation.workingDirectory, path);
  if ("write" in action) return { kind: "write", values: { ...action.write, path: absolute(action.write.path) } };
  if ("edit" in action) return { kind: "edit", values: { ...action.edit, path: absolute(action.edit.path) } };
  if ("read" in action) return { kind: "read", values: { path: absolute(action.read) } };
  return { kind: "shell", values: { command: action.shell } };
}

function fill(tool: OfferedTool, values: Values): Record<string, unknown> {
  const filled: Record<string, unknown> = {};
  for (const [value, candidates] of Object.entries(properties)) {
    const content = values[value as keyof Values];
    const property = candidates.find((name) => name in tool.properties);
    if (content === undefined || property === undefined) continue;
    const wantsList = tool.properties[property]?.type === "array";
    filled[property] = wantsList ? ["bash", "-lc", content] : content;
  }
  for (const name of tool.required) {
    // What is left is wording for people: a description, a reason.
    filled[name] ??= "as the script says";
  }
  return filled;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** For harnesses that do everything by shell. */
function asCommand(action: OwnAction): string {
  if ("shell" in action) return action.shell;
  if ("read" in action) return `cat ${quote(action.read)}`;
  if ("write" in action) {
    const path = quote(action.write.path);
    return `mkdir -p "$(dirname ${path})" && printf %s ${quote(action.write.content)} > ${path}`;
  }
  const program = "const [f,a,b]=process.argv.slice(1);fs.writeFileSync(f,fs.readFileSync(f,'utf8').replace(a,()=>b))";
  return `node -e ${quote(program)} ${quote(action.edit.path)} ${quote(action.edit.oldText)} ${quote(action.edit.newText)}`;
}
