/** A person's name as it may replace their id in a text: nothing in it is Markdown, another mention or a command. */
const harmless = /^[\p{L}\p{N}](?:[\p{L}\p{N} _-]{0,98}[\p{L}\p{N}])?$/u;

/** A mention by name, in place of one by id that only the forge can read; null if the name can't be in a text. */
export function mentionOf(name: string): string | null {
  return harmless.test(name) ? `@${name}` : null;
}
