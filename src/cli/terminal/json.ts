/** Formats a value for programs: JSON, in which no character of an agent's making controls a terminal. */
export function json(value: unknown): string {
  const text = JSON.stringify(value, null, 2);
  // JSON escapes the controls of ASCII by itself; those above it are control characters all the same.
  const escaped = text.replaceAll(
    /[\u007f-\u009f\u2028\u2029]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `${escaped}\n`;
}
