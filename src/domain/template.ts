import { Liquid, LiquidError } from "liquidjs";
import type { EventContext } from "./automation.ts";
import { InvalidInputError } from "./errors.ts";
import { promptLimit } from "./session.ts";

/** Bounds on one rendering: characters of template, steps of loops, and characters made on the way. */
const limits = { parseLimit: 200_000, renderLimit: 2_000, memoryLimit: 5_000_000 };
/** Each of these would read a file. */
const fileTags = ["include", "render", "layout", "block"];

/**
 * Renders an automation's instructions (Liquid) with the trigger's body as `event`.
 * What comes from the event is only ever printed, never read as template.
 * @throws InvalidInputError naming the place: an unknown value without a `default`, an unknown filter, a limit
 */
export async function renderInstructions(instructions: string, event: EventContext): Promise<string> {
  const engine = new Liquid({
    strictVariables: true,
    strictFilters: true,
    // `{{ event.x | default: "y" }}` is how an author says that x may be missing.
    lenientIf: true,
    ownPropertyOnly: true,
    ...limits,
    // Objects and arrays print as JSON.
    outputEscape: (value: string | number | boolean | object | null | undefined) =>
      typeof value === "object" && value !== null ? JSON.stringify(value) : String(value ?? ""),
    relativeReference: false,
    fs: noFiles,
  });
  for (const tag of fileTags) delete engine.tags[tag];
  const rendered = await render(engine, instructions, event);
  if (rendered.length > promptLimit) {
    throw new InvalidInputError(
      `instructions: rendered to ${rendered.length} characters; a prompt has at most ${promptLimit}`,
    );
  }
  if (rendered.trim() === "")
    throw new InvalidInputError("instructions: rendered to nothing: a session needs a prompt");
  return rendered;
}

/** @throws InvalidInputError where the instructions are no template, before they are saved */
export function checkInstructions(instructions: string): void {
  const engine = new Liquid({ strictFilters: true, ...limits, fs: noFiles });
  for (const tag of fileTags) delete engine.tags[tag];
  try {
    engine.parse(instructions);
  } catch (error) {
    throw problemOf(error);
  }
}

async function render(engine: Liquid, instructions: string, event: EventContext): Promise<string> {
  try {
    return String(await engine.parseAndRender(instructions, { event }));
  } catch (error) {
    throw problemOf(error);
  }
}

function problemOf(error: unknown): unknown {
  if (!(error instanceof Error) || !LiquidError.is(error)) return error;
  const said = error.message.replace(/\s*\n[\s\S]*$/u, "");
  const mend = said.startsWith("undefined variable")
    ? '; give it a default where it may be missing: {{ … | default: "" }}'
    : "";
  return new InvalidInputError(`instructions: ${said}${mend}`);
}

const unreadable = (): never => {
  throw new InvalidInputError("instructions: can't include files");
};
const noFiles = {
  readFileSync: unreadable,
  readFile: unreadable,
  existsSync: () => false,
  exists: () => Promise.resolve(false),
  contains: () => Promise.resolve(false),
  containsSync: () => false,
  resolve: (_directory: string, file: string) => file,
  dirname: () => "",
  sep: "/",
};
