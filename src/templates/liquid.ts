import { Liquid, LiquidError, type Context } from "liquidjs";
import type { EventContext } from "../domain/automations/automation.ts";
import { InvalidInputError, messageOf } from "../domain/errors/errors.ts";
import { storable } from "../domain/fields/text.ts";
import { untrustedBlock } from "./untrusted-block.ts";
import { tooMuchMemory } from "./limits.ts";

/**
 * Tags that instructions may use. Not included: tags that read files (include, render, layout, block), and tablerow,
 * which prints HTML.
 */
export const allowedTags: readonly string[] = `
  assign break capture case comment continue cycle decrement echo for if increment liquid raw unless #
`
  .trim()
  .split(/\s+/u);

/**
 * Filters that instructions may use. Each takes time in proportion to its input, and always gives the same result.
 * Not included: those that evaluate text as an expression (`*_exp`), which multiply the input by itself; `sample`,
 * with which a retried job would have another prompt; hashes and base64, which use memory outside the heap; `raw`,
 * which would print objects as `[object Object]`.
 */
export const allowedFilters: readonly string[] = `
  abs append array_to_sentence_string at_least at_most capitalize ceil cgi_escape compact concat date
  date_to_long_string date_to_rfc822 date_to_string date_to_xmlschema default divided_by downcase escape escape_once
  find find_index first floor group_by has inspect join json jsonify last lstrip map minus modulo newline_to_br
  normalize_whitespace number_of_words plus pop prepend push reject remove remove_first remove_last replace
  replace_first replace_last reverse round rstrip shift size slice slugify sort sort_natural split squish strip
  strip_html strip_newlines sum times to_integer truncate truncatewords uniq unshift untrusted upcase uri_escape url_decode
  url_encode where xml_escape
`
  .trim()
  .split(/\s+/u);

/**
 * Limit of the characters and items that all filters and ranges of a template process together. It is far above what
 * a normal template can process in its processor time; a template that exceeds it at once gets an error, and the
 * process survives.
 */
const stepLimit = 256 * 1024 * 1024;
/** An error's message may quote the template, so it is truncated to this many characters. */
const longestProblem = 500;

function createEngine(): Liquid {
  const engine = new Liquid({
    strictVariables: true,
    strictFilters: true,
    // Allows `{{ event.x | default: "y" }}` if x is missing.
    lenientIf: true,
    ownPropertyOnly: true,
    memoryLimit: stepLimit,
    // Objects and arrays are printed as JSON.
    outputEscape: printed,
    // Replaces the file system.
    templates: {},
    relativeReference: false,
  });
  engine.registerFilter("untrusted", untrusted);
  keepOnly(engine.tags, allowedTags);
  keepOnly(engine.filters, allowedFilters);
  return engine;
}

/** The filter `untrusted`: marks a text as data from outside. */
function untrusted(this: { readonly context: Context }, value: unknown): string {
  const text = storable(printed(value));
  this.context.memoryLimit.use(text.length);
  return untrustedBlock(text);
}

/** A value as a template prints it: objects and arrays as JSON. */
function printed(value: unknown): string {
  // oxlint-disable-next-line typescript/no-base-to-string -- an object never gets here
  return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value ?? "");
}

/**
 * Removes all other names, and the prototype: otherwise `constructor` would be the name of a filter, and `valueOf`
 * would return the engine itself.
 */
function keepOnly(named: object, allowed: readonly string[]): void {
  Object.setPrototypeOf(named, null);
  for (const name of Object.keys(named)) if (!allowed.includes(name)) Reflect.deleteProperty(named, name);
}

/**
 * Renders instructions on this thread without a time limit; templates.ts adds the limits. Values of the event are
 * only printed, and never interpreted as a template.
 * @param event the trigger's body, `event` in the template
 * @param longest maximum length of the result, in characters
 * @throws InvalidInputError naming the place: an unknown value without a `default`, an unknown filter, a limit
 */
export function renderLiquid(instructions: string, event: EventContext, longest: number): string {
  // A filter may leave half a character by cutting, or make NUL of `%00`: no database and no model takes these.
  const rendered = attempt(() => storable(String(createEngine().parseAndRenderSync(instructions, { event }))));
  if (rendered.length > longest) {
    throw new InvalidInputError(
      `instructions: rendered to ${rendered.length} characters; a prompt has at most ${longest}`,
    );
  }
  if (rendered.trim() === "")
    throw new InvalidInputError("instructions: rendered to nothing: a session needs a prompt");
  return rendered;
}

/**
 * Parses instructions with the same limits, to check them before they are saved.
 * @throws InvalidInputError if they are not a valid template
 */
export function checkLiquid(instructions: string): void {
  attempt(() => createEngine().parse(instructions));
}

/** Every error here comes from the template and its event, because no other code runs. */
function attempt<T>(action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new InvalidInputError(problemOf(error), { cause: error });
  }
}

function problemOf(error: unknown): string {
  const message = messageOf(error);
  if (/memory alloc limit|Invalid (?:string|array) length/u.test(message)) return tooMuchMemory("instructions");
  if (message.includes("Maximum call stack size")) return "instructions: are nested too deeply";
  const [line = ""] = message.split("\n", 1);
  const short = line.length > longestProblem ? `${line.slice(0, longestProblem)}…` : line;
  return storable(`instructions: ${LiquidError.is(error) ? "" : "can't be rendered: "}${short}${remedyOf(short)}`);
}

function remedyOf(message: string): string {
  if (message.startsWith("undefined variable"))
    return '; give it a default where it may be missing: {{ … | default: "" }}';
  if (message.startsWith("undefined filter")) return "; docs/automations.md lists the filters that there are";
  return /^tag "?\S+?"? not found/u.test(message) ? "; docs/automations.md lists the tags that there are" : "";
}
