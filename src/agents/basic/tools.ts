import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { tool } from "ai";
import { z } from "zod";
import { cutMiddle } from "../../domain/fields/text.ts";
import { runShell } from "./shell.ts";

const readCharacters = 60_000;
const shellSeconds = { usual: 120, longest: 1_800 };

/** Result of a tool: the model gets the text, the client also the change. */
export interface ToolOutcome {
  readonly text: string;
  readonly diff?: { readonly path: string; readonly oldText: string | null; readonly newText: string };
}

/** A result as the model gets it. */
export const asText = ({ text }: ToolOutcome) => ({ type: "text" as const, value: text });
const path = z.string().describe("Path, absolute or from the working directory.");

/** The agent's tools in one working directory. A tool that fails throws, and the model gets the message. */
export function createTools(cwd: string, environment: NodeJS.ProcessEnv) {
  return {
    read: tool({
      description: "Read a text file.",
      inputSchema: z.object({
        path,
        offset: z.number().int().min(1).optional().describe("First line, from 1."),
        limit: z.number().int().min(1).optional().describe("Number of lines."),
      }),
      async execute({ path: name, offset = 1, limit }): Promise<ToolOutcome> {
        const lines = (await readFile(resolve(cwd, name), "utf8")).split("\n");
        const selected = lines.slice(offset - 1, limit === undefined ? undefined : offset - 1 + limit);
        return { text: cutMiddle(selected.join("\n"), readCharacters) };
      },
      toModelOutput: ({ output }) => asText(output),
    }),
    write: tool({
      description: "Write a text file, whole; it and its folders are made where they do not exist.",
      inputSchema: z.object({ path, content: z.string() }),
      async execute({ path: name, content }): Promise<ToolOutcome> {
        const file = resolve(cwd, name);
        const before = await textOf(file);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, content);
        return { text: `Wrote ${name}.`, diff: { path: file, oldText: before, newText: content } };
      },
      toModelOutput: ({ output }) => asText(output),
    }),
    edit: tool({
      description: "Replace text in a file. The old text must stand there exactly once, unless all is true.",
      inputSchema: z.object({
        path,
        oldText: z.string().min(1),
        newText: z.string(),
        all: z.boolean().optional().describe("Replace every occurrence."),
      }),
      async execute({ path: name, oldText, newText, all = false }): Promise<ToolOutcome> {
        const file = resolve(cwd, name);
        const before = await readFile(file, "utf8");
        const found = before.split(oldText).length - 1;
        if (found === 0) throw new Error(`the old text does not stand in ${name}: read it and copy the text exactly`);
        if (found > 1 && !all)
          throw new Error(`the old text stands ${found} times in ${name}: give more of what is around it`);
        const after = before.replaceAll(oldText, () => newText);
        await writeFile(file, after);
        return { text: `Edited ${name}.`, diff: { path: file, oldText: before, newText: after } };
      },
      toModelOutput: ({ output }) => asText(output),
    }),
    shell: tool({
      description: "Run a command with sh. It gets no input. Long output is shortened in the middle.",
      inputSchema: z.object({
        command: z.string(),
        timeoutSeconds: z.number().int().min(1).max(shellSeconds.longest).optional(),
      }),
      async execute({ command, timeoutSeconds = shellSeconds.usual }, { abortSignal }): Promise<ToolOutcome> {
        const { text, ok } = await runShell(command, {
          cwd,
          environment,
          timeoutMs: timeoutSeconds * 1_000,
          signal: abortSignal,
        });
        if (!ok) throw new Error(text);
        return { text };
      },
      toModelOutput: ({ output }) => asText(output),
    }),
  };
}

/** See `createTools`. */
export type Tools = ReturnType<typeof createTools>;

async function textOf(file: string): Promise<string | null> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
