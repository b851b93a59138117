/**
 * Whether a text contains each of some words, in any order and case.
 * @param words as they were typed; without any, every text matches
 */
export function hasWords(text: string, words: string): boolean {
  const searched = text.toLowerCase();
  return words
    .trim()
    .toLowerCase()
    .split(/\s+/u)
    .every((word) => searched.includes(word));
}
