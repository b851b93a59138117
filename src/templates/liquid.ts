import { Liquid, LiquidError } from "liquidjs";
import type { EventContext } from "../domain/automation.ts";
import { InvalidInputError } from "../domain/errors.ts";
import { renderHeapMib } from "./limits.ts";

/**
 * Tags that instructions may use. Those that read files (include, render, layout, block) are not among them, nor
 * tablerow, which prints HTML.
 */
export const allowedTags: readonly string[] = `
  assign break capture case comment continue cycle decrement echo for if increment liquid raw unless #
`
  .trim()
  .split(/\s+/u);

/**
 * Filters that instructions may use: each does about as much as its input is long, and gives the same every time. Not
 * among them: those that evaluate text as an expression (`*_exp`), which multiply the input by itself; `sample`, by which
 * a job that is tried again would ask for something else; hashes and base64, which take memory outside of the heap; `raw`,
 * which would print objects as `[object Object]`.
 */
export const allowedFilters: readonly string[] = `
  abs append array_to_sentence_string at_least at_most capitalize ceil cgi_escape compact concat date
  date_to_long_string date_to_rfc822 date_to_string date_to_xmlschema default divided_by downcase escape escape_once
  find find_index first floor group_by has inspect join json jsonify last lstrip map minus modulo newline_to_br
  normalize_whitespace number_of_words plus pop prepend push reject remove remove_first remove_last replace
  replace_first replace_last reverse round rstrip shift size slice slugify sort sort_natural split squish strip
  strip_html strip_newlines sum times to_integer truncate truncatewords uniq unshift upcase uri_escape url_decode
  url_encode where xml_escape
`
  .trim()
  .split(/\s+/u);

/**
 * Characters and items that filters and ranges went through, all together. Far above what the processor time allows to an
 * honest template; what asks for more at once is told so without ending the process.
 */
const stepLimit = 256 * 1024 * 1024;
/** An error's message may quote the template, which is long. */
const longestProblem = 500;

/** What is said of a template that takes too much. */
export const tooMuchMemory = `instructions: need more than ${renderHeapMib} MiB of memory: make them, or what they make of the event, smaller`;

function createEngine(): Liquid {
  const engine = new Liquid({
    strictVariables: true,
    strictFilters: true,
    // `{{ event.x | default: "y" }}` is how an author says that x may be missing.
    lenientIf: true,
    ownPropertyOnly: true,
    memoryLimit: stepLimit,
    // Objects and arrays print as JSON.
    outputEscape: (value: string | number | boolean | object | null | undefined) =>
      typeof value === "object" && value !== null ? JSON.stringify(value) : String(value ?? ""),
    // In the place of the file system.
    templates: {},
    relativeReference: false,
  });
  keepOnly(engine.tags, allowedTags);
  keepOnly(engine.filters, allowedFilters);
  return engine;
}

/** Without a prototype, else `constructor` would be the name of a filter, and `valueOf` one that gives the engine itself. */
function keepOnly(named: object, allowed: readonly string[]): void {
  Object.setPrototypeOf(named, null);
  for (const name of Object.keys(named)) if (!allowed.includes(name)) Reflect.deleteProperty(named, name);
}

/**
 * Renders instructions, on this thread and without a limit on time: see templates.ts for that.
 * What comes from the event is only ever printed, never read as template.
 * @param event the trigger's body, `event` in the template
 * @param longest characters that the result may have
 * @throws InvalidInputError naming the place: an unknown value without a `default`, an unknown filter, a limit
 */
export function renderLiquid(instructions: string, event: EventContext, longest: number): string {
  const rendered = attempt(() => String(createEngine().parseAndRenderSync(instructions, { event })));
  if (rendered.length > longest) {
    throw new InvalidInputError(
      `instructions: rendered to ${rendered.length} characters; a prompt has at most ${longest}`,
    );
  }
  if (rendered.trim() === "")
    throw new InvalidInputError("instructions: rendered to nothing: a session needs a prompt");
  return rendered;
}

/** Parses instructions, with the same limits. @throws InvalidInputError where they are no template, before they are saved */
export function checkLiquid(instructions: string): void {
  attempt(() => createEngine().parse(instructions));
}

/** Whatever is thrown here, the template and its event made it: nothing else runs. */
function attempt<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new InvalidInputError(problemOf(error), { cause: error });
  }
}

function problemOf(error: unknown): string {
  const said = error instanceof Error ? error.message : String(error);
  if (/memory alloc limit|Invalid (?:string|array) length/u.test(said)) return tooMuchMemory;
  if (said.includes("Maximum call stack size")) return "instructions: are nested too deeply";
  const [line = ""] = said.split("\n", 1);
  const short = line.length > longestProblem ? `${line.slice(0, longestProblem)}…` : line;
  return `instructions: ${LiquidError.is(error) ? "" : "can't be rendered: "}${short}${mendOf(short)}`.toWellFormed();
}

function mendOf(said: string): string {
  if (said.startsWith("undefined variable"))
    return '; give it a default where it may be missing: {{ … | default: "" }}';
  if (said.startsWith("undefined filter")) return "; docs/automations.md lists the filters that there are";
  return /^tag "?\S+?"? not found/u.test(said) ? "; docs/automations.md lists the tags that there are" : "";
}
