/**
 * Whether each of some words stands in a text, in any order and case.
 * @param words as they were typed; none stand in every text
 */
export function hasWords(text: string, words: string): boolean {
  const searched = text.toLowerCase();
  return words
    .trim()
    .toLowerCase()
    .split(/\s+/u)
    .every((word) => searched.includes(word));
}
